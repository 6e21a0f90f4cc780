"""What a look at a RayJob writes at once, and what has to stand first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from muster.api.rayjob import RayJob
from muster.controllers.context import Context
from muster.controllers.rayjob.look import Look
from muster.controllers.settling import LONGEST_SETTLING, SETTLING, Settling
from muster.kube.resource import RAYJOBS
from tests.controllers.fake_clock import FakeClock


class _Stored:
    """Takes the place of the API server: what is patched, and the object as it is then."""

    def __init__(self) -> None:
        self.patches: list[dict[str, Any]] = []

    async def patch(self, raw: dict[str, Any], change: dict[str, Any], subresource: str) -> dict[str, Any]:
        assert subresource == "status"
        self.patches.append(change["status"])
        return {**raw, "status": {**raw.get("status", {}), **change["status"]}}


class _Job:
    """Looks at one RayJob, one after the other."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.stored = _Stored()
        self._context = SimpleNamespace(
            job_settling=Settling(self.clock),
            primaries={RAYJOBS: self.stored},
            known_jobs=SimpleNamespace(seen=lambda *_: None),
            clock=self.clock,
        )
        self._raw = {
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "metadata": {"name": "demo", "namespace": "team", "uid": "u", "resourceVersion": "1"},
            "spec": {"entrypoint": "true"},
            "status": {"jobDeploymentStatus": "Initializing"},
        }

    async def look(self, **changes: Any) -> float | None:
        look = Look(cast(Context, self._context), self._raw, RayJob.parse(self._raw))
        try:
            return await look.write_once_settled(**changes)
        finally:
            self._raw = look.raw


async def test_a_message_is_written_when_it_has_stood() -> None:
    job = _Job()
    assert await job.look(message="the gang waits") == SETTLING
    assert job.stored.patches == []
    await job.clock.advance(SETTLING)
    assert await job.look(message="the gang waits") is None
    assert job.stored.patches == [{"message": "the gang waits"}]


async def test_of_messages_that_follow_each_other_only_the_last_is_written() -> None:
    job = _Job()
    await job.look(message="the gang waits")
    await job.look(message="0 of 2 workers are ready")
    await job.clock.advance(SETTLING)
    await job.look(message="0 of 2 workers are ready")
    assert job.stored.patches == [{"message": "0 of 2 workers are ready"}]


async def test_a_message_that_never_stands_is_written_all_the_same() -> None:
    job = _Job()
    for passed in range(10):
        await job.look(message=f"after {passed}")
        await job.clock.advance(LONGEST_SETTLING / 5)
    assert [len(patch) for patch in job.stored.patches] == [1]


async def test_a_state_or_reason_is_written_at_once_and_the_message_with_it() -> None:
    job = _Job()
    await job.look(message="the gang waits")
    assert await job.look(message="an image can't be pulled", reason="ImagePullFailed") is None
    assert await job.look(message="Ray runs it", reason=None, job_status="RUNNING") is None
    assert job.stored.patches == [
        {"message": "an image can't be pulled", "reason": "ImagePullFailed"},
        {"message": "Ray runs it", "reason": None, "jobStatus": "RUNNING"},
    ]


async def test_what_comes_after_a_write_has_its_own_time() -> None:
    job = _Job()
    await job.look(message="one")
    await job.clock.advance(SETTLING)
    await job.look(message="one")
    assert await job.look(message="one") is None
    assert await job.look(message="two") == SETTLING


async def test_a_message_that_is_too_long_to_be_stored_is_told_once_and_does_not_bring_the_job_back() -> None:
    job, long = _Job(), "x" * 1_000_000
    await job.look(message=long)
    await job.clock.advance(SETTLING)
    assert await job.look(message=long) is None
    assert await job.look(message=long) is None
    assert len(job.stored.patches) == 1
