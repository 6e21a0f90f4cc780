"""When a scenario is through, and when it never will be."""

from __future__ import annotations

import pytest

from bench.controllers.arrivals import Arrivals, Failed
from bench.controllers.scenario import Kind, RayObject, Scenario, Status
from muster.kube.objects import ObjectMeta

_CLUSTERS = Scenario(Kind.CLUSTERS, 2)
_JOBS = Scenario(Kind.JOBS, 2)


class _Clock:
    """Goes on by a second with each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def _cluster(name: str, state: str) -> RayObject:
    return RayObject(metadata=ObjectMeta(name=name), status=Status(state=state))


def _job(name: str, deployment: str, verdict: str, message: str = "") -> RayObject:
    return RayObject(
        metadata=ObjectMeta(name=name),
        status=Status(job_deployment_status=deployment, job_status=verdict, message=message),
    )


def _alive() -> None:
    return None


async def test_it_is_over_when_every_name_was_ready_once() -> None:
    arrivals = Arrivals(_CLUSTERS, _Clock())
    for name in ("a", "b"):
        arrivals.note_created(name)
    for one in (_cluster("a", "ready"), _cluster("a", "suspended"), _cluster("other", "ready"), _cluster("b", "ready")):
        arrivals.note(one)
    await arrivals.all_there(["a", "b"], patience=60, dead=_alive)
    assert arrivals.created == {"a": 2, "b": 3}
    assert arrivals.there == {"a": 4, "other": 5, "b": 6}
    assert arrivals.seconds(["a", "b"]) == [2, 3]
    assert arrivals.elapsed(["a", "b"]) == 4


async def test_a_death_ends_the_wait_however_much_patience_there_is() -> None:
    arrivals = Arrivals(_CLUSTERS)
    arrivals.note(_cluster("a", "ready"))
    with pytest.raises(Failed, match="1 of 2 are there, and it has ended"):
        await arrivals.all_there(["a", "b"], patience=10_000, dead=lambda: "it has ended")


async def test_the_wait_ends_when_nothing_comes_any_more() -> None:
    arrivals = Arrivals(_CLUSTERS, _Clock())
    arrivals.note_created("a")
    arrivals.note(_cluster("a", "suspended"))
    with pytest.raises(Failed, match="0 of 1 are there, and no other came for 3 s; a: suspended"):
        await arrivals.all_there(["a"], patience=3, dead=_alive)


@pytest.mark.parametrize(
    ("job", "is_there", "has_failed"),
    [
        (_job("j", "Running", "SUCCEEDED"), False, False),
        (_job("j", "Complete", "SUCCEEDED"), True, False),
        (_job("j", "Complete", "STOPPED"), False, True),
        (_job("j", "Failed", "FAILED"), False, True),
        (_job("j", "ValidationFailed", ""), False, True),
        (_job("j", "", ""), False, False),
    ],
)
def test_a_job_is_there_when_it_is_complete_and_succeeded(job: RayObject, is_there: bool, has_failed: bool) -> None:
    assert (_JOBS.is_there(job), _JOBS.has_failed(job)) == (is_there, has_failed)


async def test_a_failed_job_ends_the_wait_with_its_message() -> None:
    arrivals = Arrivals(_JOBS)
    arrivals.note(_job("a", "Complete", "SUCCEEDED"))
    arrivals.note(_job("b", "Failed", "FAILED", "exit status 1"))
    with pytest.raises(Failed, match="1 of 2 are there, 1 have failed; b: Failed, FAILED, exit status 1"):
        await arrivals.all_there(["a", "b"], patience=10_000, dead=_alive)
