"""Stand-ins for kubelets and the Job controller, for all namespaces of a control plane, whoever made the objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from muster.kube.client import ApiClient
from muster.kube.errors import ApiError, Conflict, NotFound
from muster.kube.resource import JOBS, PODS
from tests.differential.heads import Heads
from tests.integration.followed_namespace import FollowedNamespace
from tests.integration.stand_ins import Object, now

_PAUSE = 0.3
_SUBMITTER = "ray-job-submitter"
_POD_IP = "10.0.0.1"


class Kubelets:
    """Every pod runs and is ready at once; a submitter's Job begins what it submits, and ends when that has ended."""

    def __init__(self, api: ApiClient, heads: Heads) -> None:
        self._api = api
        self._heads = heads
        self._there = FollowedNamespace(api, None, (PODS, JOBS))

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Kubelets]:
        """Work for the length of the block."""
        async with self._there.followed():
            task = asyncio.create_task(self._work())
            try:
                yield self
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _work(self) -> None:
        while True:
            for pod in self._there.all(PODS):
                if pod["status"].get("phase") == "Pending" and not pod["metadata"].get("deletionTimestamp"):
                    with suppress(ApiError):
                        await self._run(pod)
                elif pod["status"].get("phase") == "Running":
                    with suppress(ApiError):
                        await self._submit_beside(pod)
            for job in self._there.all(JOBS):
                if not job["status"].get("conditions"):
                    with suppress(ApiError):
                        await self._submit(job)
            await asyncio.sleep(_PAUSE)

    async def _run(self, pod: Object) -> None:
        containers = pod["spec"]["containers"]
        status: Object = {
            "phase": "Running",
            "podIP": _POD_IP,
            "podIPs": [{"ip": _POD_IP}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now()}],
            "containerStatuses": [_running(container) for container in containers],
        }
        await self._report(PODS, pod, status)

    async def _submit(self, job: Object) -> None:
        container = job["spec"]["template"]["spec"]["containers"][0]
        env = {entry["name"]: entry.get("value", "") for entry in container.get("env") or []}
        head, submission_id = env["RAY_DASHBOARD_ADDRESS"], env["RAY_JOB_SUBMISSION_ID"]
        self._heads.submit(head, submission_id, "")
        run = self._heads.runs[head, submission_id]
        if run.ended is not None:
            await self._report(JOBS, job, _ended())

    async def _submit_beside(self, pod: Object) -> None:
        """In SidecarMode the submitter is a container of the head pod."""
        containers = pod["spec"]["containers"]
        beside = next((one for one in containers if one["name"] == _SUBMITTER), None)
        states = {one["name"]: one["state"] for one in pod["status"].get("containerStatuses") or []}
        if beside is None or "terminated" in states.get(_SUBMITTER, {}):
            return
        namespace, cluster = pod["metadata"]["namespace"], pod["metadata"]["labels"]["ray.io/cluster"]
        env = {entry["name"]: entry.get("value", "") for entry in beside["env"]}
        run = (f"{cluster}-head-svc.{namespace}.svc.cluster.local:8265", env["RAY_JOB_SUBMISSION_ID"])
        self._heads.submit(*run, "")
        if self._heads.runs[run].ended is not None:
            statuses = [_running(one) for one in containers if one is not beside]
            ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}}
            statuses.append({**_running(beside), "ready": False, "started": False, "state": ended})
            await self._report(PODS, pod, {**pod["status"], "containerStatuses": statuses})

    async def _report(self, resource: Any, one: Mapping[str, Any], status: Object) -> None:
        metadata = one["metadata"]
        patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": status}
        with suppress(NotFound, Conflict):
            namespace, name = metadata["namespace"], metadata["name"]
            written = await self._api.patch(resource, namespace, name, patch, subresource="status")
            self._there.record(resource, written)


def _running(container: Mapping[str, Any]) -> Object:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now()}},
    }


def _ended() -> Object:
    conditions = [
        {"type": kind, "status": "True", "reason": "CompletionsReached", "message": "it has succeeded",
         "lastTransitionTime": now(), "lastProbeTime": now()}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]  # fmt: skip
    return {"startTime": now(), "completionTime": now(), "succeeded": 1, "conditions": conditions}
