"""A recent answer of a dashboard may have the job go on, and decides nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from muster.api.rayjob import JobStatus, RayJobStatus, SubmissionMode
from muster.controllers.context import ObservedRayCluster
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob import running
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.submission import Submitter, SubmitterState
from muster.controllers.rayjob.verdict import Decision, Fail, Missing, Stay
from muster.controllers.recent import RecentAnswers
from muster.ray.job_info import JobInfo
from tests.controllers.fake_clock import FakeClock
from tests.ray.ray_objects import ray_cluster

RUNNING = JobInfo("demo-1", JobStatus.RUNNING)


class _Asked:
    """A job whose submitter is at work, and what Ray answers, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: JobInfo | Missing) -> None:
        self.left = list(answers)
        self.recorded = JobStatus.NEW
        clock = FakeClock()
        options = SimpleNamespace(status_check_timeout=300.0, submitter_grace=300.0)
        self._look = SimpleNamespace(
            attempt="1",
            key="team/demo",
            now=clock.now(),
            job=SimpleNamespace(spec=SimpleNamespace(mode=SubmissionMode.K8S_JOB)),
            status=RayJobStatus(job_id="demo-1"),
            context=SimpleNamespace(recent_answers=RecentAnswers(clock, 3.0), options=options),
        )

        async def ask(*_: object) -> JobInfo | Missing:
            return self.left.pop(0)

        monkeypatch.setattr(running, "_ask", ask)
        monkeypatch.setattr(running, "submitter_version", lambda _: "1")
        monkeypatch.setattr(job_cluster, "dashboard", lambda *_: "head")
        monkeypatch.setattr(job_cluster, "head_is_gone", lambda *_: False)

    async def decide(self) -> Decision:
        self._look.ray_status = self.recorded
        submitter = Submitter(SubmitterState.ACTIVE)
        cluster: Any = ObservedRayCluster()
        return await running._decide(cast(Look, self._look), cluster, ray_cluster(), submitter)


async def test_a_recent_answer_is_used_again_while_the_job_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _Asked(monkeypatch, Missing(), RUNNING)
    assert isinstance(await asked.decide(), Stay)
    assert isinstance(await asked.decide(), Stay)
    assert asked.left == [RUNNING]


async def test_that_ray_does_not_know_a_job_which_another_has_seen_run_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = _Asked(monkeypatch, Missing(), RUNNING)
    await asked.decide()
    asked.recorded = JobStatus.RUNNING
    assert isinstance(await asked.decide(), Stay)
    assert asked.left == []


async def test_a_job_that_ray_has_forgotten_is_lost_by_its_latest_word(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _Asked(monkeypatch, RUNNING, Missing())
    await asked.decide()
    asked.recorded = JobStatus.RUNNING
    asked._look.context.recent_answers.forget("team/demo")
    assert isinstance(await asked.decide(), Fail)
