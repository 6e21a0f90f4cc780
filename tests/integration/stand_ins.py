"""What the control plane level lacks: kubelets, the Job controller's pods and the garbage collector, as far as the
controllers under test notice them. Each looks at one namespace again and again and writes only what its original would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from muster.kube.client import ApiClient
from muster.kube.errors import ApiError, NotFound
from muster.kube.resource import JOBS, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS, SERVICES, Resource
from muster.ray.job_info import Submission
from muster.ray.jobs_api import JobNotFound, RayApiError, RayJobsClient

Object = dict[str, Any]
_CHILDREN = (PODS, SERVICES, JOBS, PODGROUPS, RAYCLUSTERS)


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class StandIns:
    """The stand-ins of one namespace. `holds_back` says which pods the kubelets do not start (yet)."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.holds_back: Callable[[Object], bool] = lambda pod: False
        self.submitters_run = True
        self.ever: dict[Resource, set[str]] = {resource: set() for resource in _CHILDREN}
        """The UIDs of all objects that ever were, as far as they lived long enough to be seen."""

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[StandIns]:
        """Work for the length of the block."""
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
            await asyncio.sleep(0.1)

    async def _start_pods(self) -> None:
        for pod in await self.api.list(PODS, self.namespace):
            waiting = pod["status"].get("phase") == "Pending" and not pod["metadata"].get("deletionTimestamp")
            if waiting and not self.holds_back(pod):
                await self.set_pod(pod["metadata"]["name"], phase="Running", ready=True)

    async def set_pod(self, name: str, *, phase: str, ready: bool) -> None:
        """Report a pod's state as its kubelet would."""
        status = {
            "phase": phase,
            "podIP": "10.0.0.1",
            "podIPs": [{"ip": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": now()}],
        }
        with suppress(NotFound):
            await self.api.patch(PODS, self.namespace, name, {"status": status}, subresource="status")

    async def _run_submitters(self) -> None:
        if not self.submitters_run:
            return
        for job in await self.api.list(JOBS, self.namespace):
            if not job["status"].get("conditions") and not job["metadata"].get("deletionTimestamp"):
                await self._run_submitter(job)

    async def _run_submitter(self, job: Object) -> None:
        env = {entry["name"]: entry.get("value") for entry in job["spec"]["template"]["spec"]["containers"][0]["env"]}
        async with RayJobsClient(f"http://{env['RAY_DASHBOARD_ADDRESS']}", timeout=2.0) as ray:
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
            await self.api.patch(JOBS, self.namespace, name, {"status": status}, subresource="status")

    async def _collect_garbage(self) -> None:
        """Delete what has lost its owner."""
        children = {resource: await self.api.list(resource, self.namespace) for resource in _CHILDREN}
        live = {owner["metadata"]["uid"] for owner in await self.api.list(RAYJOBS, self.namespace)}
        for resource, child in _all(children):
            self.ever[resource].add(child["metadata"]["uid"])
        live |= {child["metadata"]["uid"] for some in children.values() for child in some}
        for resource, child in _all(children):
            owners = child["metadata"].get("ownerReferences") or []
            if owners and not any(owner["uid"] in live for owner in owners):
                with suppress(NotFound):
                    name = child["metadata"]["name"]
                    await self.api.delete(resource, self.namespace, name, grace_seconds=0, propagation="Background")


def _all(children: dict[Resource, list[Object]]) -> Iterator[tuple[Resource, Object]]:
    for resource, some in children.items():
        for child in some:
            yield resource, child
