"""What is counted when an attempt ends can be stored, whoever has written the count before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from muster.api.fieldtypes import INT32_MAX
from muster.api.rayjob import JobStatus, RayJob
from muster.controllers.rayjob.ending import complete, fail
from muster.controllers.rayjob.look import Look


class _Ended:
    """A look at a job of this status, and what is written."""

    def __init__(self, *, backoff_limit: int = 0, **status: Any) -> None:
        job = RayJob.parse(
            {
                "apiVersion": "ray.io/v1",
                "kind": "RayJob",
                "metadata": {"name": "demo", "namespace": "team", "uid": "u"},
                "spec": {"entrypoint": "true", "backoffLimit": backoff_limit},
                "status": {"jobDeploymentStatus": "Running", **status},
            }
        )
        self.written: dict[str, Any] = {}
        self._look = SimpleNamespace(
            job=job,
            status=job.status,
            ray_status=JobStatus.RUNNING,
            attempt_started=0.0,
            problems_with=lambda *_: [],
            write=self._write,
            stamp=lambda: "2026-01-01T00:00:00Z",
            count_attempt=lambda *_: None,
            say=lambda *_, **__: None,
        )

    async def _write(self, **changes: Any) -> None:
        self.written |= changes

    @property
    def look(self) -> Look:
        return cast(Look, self._look)


@pytest.mark.parametrize(("before", "after"), [(None, 1), (1, 2), (INT32_MAX - 1, INT32_MAX), (INT32_MAX, INT32_MAX)])
async def test_failures_and_successes_are_counted_as_far_as_can_be_stored(before: int | None, after: int) -> None:
    ended = _Ended(failed=before)
    await fail(ended.look, "AppFailed", "no")
    assert (ended.written["failed"], ended.written["job_deployment_status"]) == (after, "Failed")
    ended = _Ended(succeeded=before)
    await complete(ended.look, job_status=JobStatus.SUCCEEDED.value)
    assert (ended.written["succeeded"], ended.written["job_deployment_status"]) == (after, "Complete")


async def test_a_count_that_can_grow_no_more_is_not_retried_for_ever() -> None:
    ended = _Ended(backoff_limit=INT32_MAX, failed=INT32_MAX)
    await fail(ended.look, "AppFailed", "no")
    assert ended.written["job_deployment_status"] == "Failed"
