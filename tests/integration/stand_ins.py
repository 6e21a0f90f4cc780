"""What the control plane level lacks: kubelets, the Job controller's pods and the garbage collector, as far as the
controllers under test notice them. Each follows one namespace by watches and writes only what its original would.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from muster.kube.client import ApiClient
from muster.kube.errors import ApiError, NotFound
from muster.kube.resource import JOBS, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS, SECRETS, SERVICES, Resource
from muster.ray.job_info import Submission
from muster.ray.jobs_api import JobNotFound, RayApiError, RayJobsClient
from tests.integration.followed_namespace import FollowedNamespace

Object = dict[str, Any]
_CHILDREN = (PODS, SERVICES, JOBS, PODGROUPS, RAYCLUSTERS)
_PAUSE = 0.05
"""Seconds between two looks at what is known; a test may change its mind on what the stand-ins do."""


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class StandIns:
    """The stand-ins of one namespace. `holds_back` says which pods the kubelets do not start (yet)."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.holds_back: Callable[[Object], bool] = lambda pod: False
        self.submitters_run = True
        self._there = FollowedNamespace(api, namespace, (*_CHILDREN, RAYJOBS))

    @property
    def ever(self) -> dict[Resource, set[str]]:
        """The UIDs of all objects that ever were, as far as one has heard of them."""
        return {resource: self._there.ever[resource] for resource in _CHILDREN}

    def heard(self, resource: Resource) -> list[Object] | None:
        """The objects of a kind, a moment old at the most; None for a kind that is not watched."""
        return self.there(resource) if resource in self._there.objects else None

    def there(self, resource: Resource) -> list[Object]:
        """The objects of a kind, a moment old at the most."""
        return list(self._there.all(resource))

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[StandIns]:
        """Work for the length of the block."""
        async with self._there.followed():
            task = asyncio.create_task(self._work())
            try:
                yield self
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def all_that_ever_were(self, resource: Resource) -> set[str]:
        """The UIDs of the objects of a kind, those that are gone included."""
        present = {one["metadata"]["uid"] for one in await self.api.list(resource, self.namespace)}
        return self.ever[resource] | present

    async def _work(self) -> None:
        while True:
            with suppress(ApiError):
                await self._start_pods()
            with suppress(ApiError, RayApiError):
                await self._run_submitters()
            with suppress(ApiError):
                await self._collect_garbage()
            await asyncio.sleep(_PAUSE)

    async def _start_pods(self) -> None:
        for pod in self._there.all(PODS):
            waiting = pod["status"].get("phase") == "Pending" and not pod["metadata"].get("deletionTimestamp")
            if waiting and not self.holds_back(pod):
                # Not over what a test has made of the pod meanwhile.
                await self._set_pod(pod["metadata"]["name"], "Running", True, pod["metadata"]["resourceVersion"])

    async def set_pod(self, name: str, *, phase: str, ready: bool) -> None:
        """Report a pod's state as its kubelet would."""
        await self._set_pod(name, phase, ready, None)

    async def _set_pod(self, name: str, phase: str, ready: bool, version: str | None) -> None:
        status = {
            "phase": phase,
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": now()}],
        }
        patch: Object = (
            {"status": status} if version is None else {"metadata": {"resourceVersion": version}, "status": status}
        )
        with suppress(NotFound):
            self._there.record(PODS, await self.api.patch(PODS, self.namespace, name, patch, subresource="status"))

    async def _run_submitters(self) -> None:
        if not self.submitters_run:
            return
        for job in self._there.all(JOBS):
            if job["metadata"]["labels"].get("ray.io/node-type") == "redis-cleanup":
                continue
            if not job["status"].get("conditions") and not job["metadata"].get("deletionTimestamp"):
                await self._run_submitter(job)

    async def _run_submitter(self, job: Object) -> None:
        variables = job["spec"]["template"]["spec"]["containers"][0]["env"]
        env = {entry["name"]: entry.get("value") for entry in variables}
        address = f"http://{env['RAY_DASHBOARD_ADDRESS']}"
        reference = next((one for one in variables if one["name"] == "RAY_AUTH_TOKEN"), None)
        token = None if reference is None else await self._secret_of(reference)
        async with RayJobsClient(address, token, timeout=2.0) as ray:
            submission_id = env["RAY_JOB_SUBMISSION_ID"]
            try:
                info = await ray.get(submission_id)
            except JobNotFound:
                if not self.submitters_run:  # told to stop while this one was looking
                    return
                await ray.submit(Submission.from_json(env["MUSTER_SUBMISSION"], submission_id))
                return
        if info.status.terminal:
            await self.end_submitter(job["metadata"]["name"], succeeded=info.status == "SUCCEEDED")

    async def _secret_of(self, variable: Object) -> str:
        reference = variable["valueFrom"]["secretKeyRef"]
        secret = await self.api.get(SECRETS, self.namespace, reference["name"])
        return base64.b64decode(secret["data"][reference["key"]]).decode()

    async def end_submitter(self, name: str, *, succeeded: bool) -> None:
        """Report the end of a submitter's Job as the Job controller would."""
        first, last = ("SuccessCriteriaMet", "Complete") if succeeded else ("FailureTarget", "Failed")
        status: Object = {
            "startTime": now(),
            "succeeded" if succeeded else "failed": 1,
            "conditions": [
                {"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "message": "it has failed",
                 "lastTransitionTime": now(), "lastProbeTime": now()}
                for kind in (first, last)
            ],
        }  # fmt: skip
        if succeeded:
            status["completionTime"] = now()
        with suppress(NotFound):
            patched = await self.api.patch(JOBS, self.namespace, name, {"status": status}, subresource="status")
            self._there.record(JOBS, patched)

    async def _collect_garbage(self) -> None:
        """Delete what has lost its owner."""
        if not _orphans(self._there.objects):
            return
        # One kind may be ahead of another: like the original, ask again before anything is deleted. Owners come last.
        present = {resource: await self.api.list(resource, self.namespace) for resource in (*_CHILDREN, RAYJOBS)}
        for resource, name in _orphans({resource: _by_uid(some) for resource, some in present.items()}):
            with suppress(NotFound):
                await self.api.delete(resource, self.namespace, name, grace_seconds=0, propagation="Background")


def _orphans(present: Mapping[Resource, Mapping[str, Object]]) -> list[tuple[Resource, str]]:
    """The kinds and names of the objects whose owners are all gone."""
    live = {uid for some in present.values() for uid in some}
    found = []
    for resource in _CHILDREN:
        for child in present[resource].values():
            owners = child["metadata"].get("ownerReferences") or []
            if owners and not any(owner["uid"] in live for owner in owners):
                found.append((resource, child["metadata"]["name"]))
    return found


def _by_uid(objects: Iterable[Object]) -> dict[str, Object]:
    return {one["metadata"]["uid"]: one for one in objects}
