"""Suspending a RayJob frees its pods and its quota; resuming runs it again."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api, wait_until
from tests.e2e.rayjobs import gang_pods, status_of, wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import queue, ray_job

pytestmark = pytest.mark.node


def allocated_cpu(api: Api, name: str) -> str:
    """What the queue's status says is allocated; "0" where it says nothing."""
    status = (api.get("Queue", name) or {}).get("status") or {}
    return str((status.get("allocated") or {}).get("cpu", "0"))


@pytest.mark.long
def test_suspend_frees_quota_and_pods_and_resume_runs_again(api: Api, target: Target, namespace: str) -> None:
    name = f"{namespace}-queue"
    api.apply([queue(name, cpu="2")])
    try:
        api.apply(
            [
                ray_job(
                    "pausing",
                    namespace,
                    ray_image=target.ray_image,
                    entrypoint='python -c "import time; time.sleep(600)"',
                    queue_name=name,
                )
            ]
        )
        wait_until(
            lambda: status_of(api, "pausing", namespace).get("jobStatus") == "RUNNING", "the job runs", within=300
        )
        assert allocated_cpu(api, name) != "0"

        api.merge_patch("RayJob", "pausing", namespace, {"spec": {"suspend": True}})
        wait_for_deployment_status(api, "pausing", namespace, "Suspended", within=90)
        wait_until(lambda: not gang_pods(api, "pausing", namespace), "no pod is left", within=60)
        wait_until(lambda: allocated_cpu(api, name) == "0", "the queue's quota is free", within=30)

        api.merge_patch(
            "RayJob", "pausing", namespace, {"spec": {"suspend": False, "entrypoint": "python -c \"print('resumed')\""}}
        )
        status = wait_for_deployment_status(api, "pausing", namespace, "Complete", within=300)
        assert status["jobStatus"] == "SUCCEEDED"
    finally:
        api.delete("Queue", name)
