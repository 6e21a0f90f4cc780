"""Deleting a running RayJob removes all that it made."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api, wait_until
from tests.e2e.rayjobs import status_of
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

pytestmark = pytest.mark.node

MADE = ("RayCluster", "PodGroup", "Pod", "Job")


def test_deleting_a_running_job_removes_everything_it_made(api: Api, target: Target, namespace: str) -> None:
    api.apply(
        [
            ray_job(
                "doomed", namespace, ray_image=target.ray_image, entrypoint='python -c "import time; time.sleep(600)"'
            )
        ]
    )
    wait_until(
        lambda: status_of(api, "doomed", namespace).get("jobStatus") == "RUNNING", "the job runs in Ray", within=300
    )
    assert all(api.list(kind, namespace) for kind in MADE)

    api.delete("RayJob", "doomed", namespace)

    for kind in ("RayJob", *MADE):
        wait_until(lambda kind=kind: not api.list(kind, namespace), f"no {kind} is left", within=90)  # type: ignore[misc]
    assert [s["metadata"]["name"] for s in api.list("Service", namespace)] == []
