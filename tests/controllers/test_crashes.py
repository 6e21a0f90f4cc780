"""Pods that are replaced again and again, counted by their places."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from muster.controllers.crashes import FORGET_SECONDS, CrashedPods
from muster.controllers.pod_trouble import CRASH_LOOP
from muster.kube.objects import Pod
from tests.controllers.fake_clock import FakeClock
from tests.controllers.observed_pods import pod


def crashed(name: str, **changes: Any) -> Pod:
    return pod(name, **{"phase": "Failed", "restart": "Never", "exited": 1, **changes})


def evicted(name: str) -> Pod:
    found = crashed(name)
    return msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, reason="Evicted"))


@pytest.mark.parametrize(
    ("pods", "hopeless_from"),
    [
        ([crashed("a")], None),
        ([crashed("a"), crashed("a")], None),
        ([crashed("a"), crashed("b")], math.inf),
        ([crashed("a"), crashed("b"), crashed("c")], 0.0),
        ([crashed("a"), crashed("b", replica=1), crashed("c", replica=2)], None),
        ([crashed("a"), crashed("b", group="others"), crashed("c")], math.inf),
        ([evicted("a"), evicted("b"), evicted("c")], None),
        ([crashed("a", exited=0), crashed("b", exited=0), crashed("c", exited=0)], None),
        ([crashed("a", restart="Always"), crashed("b", restart="Always"), crashed("c", restart="Always")], None),
    ],
    ids=[
        "one", "one, seen twice", "two", "three", "three places", "another group between", "evicted", "no failure",
        "kubelets restart them",
    ],
)  # fmt: skip
def test_three_pods_of_one_place_are_a_crash_loop(pods: list[Pod], hopeless_from: float | None) -> None:
    known = CrashedPods(FakeClock())
    for one in pods:
        known.note("cluster", one)
    found = known.troubles("cluster", [])
    assert [trouble.hopeless_from for trouble in found] == ([] if hopeless_from is None else [hopeless_from])
    assert all(trouble.reason == CRASH_LOOP for trouble in found)
    assert known.troubles("another", []) == []


def test_what_is_told_names_the_last_pod_its_exit_and_how_often() -> None:
    known = CrashedPods(FakeClock())
    for name in ("a", "b", "c"):
        known.note("cluster", crashed(name))
    (found,) = known.troubles("cluster", [])
    assert found.sentence.startswith("Worker pod c: container ray keeps ending: CrashLoopBackOff: exit code 1")
    assert "3 pods in its place" in found.sentence


@pytest.mark.parametrize(("present", "told"), [(pod("d"), 0), (pod("d", ready=False), 1), (pod("d", replica=1), 1)])
def test_a_place_whose_pod_is_ready_has_healed(present: Pod, told: int) -> None:
    known = CrashedPods(FakeClock())
    known.note("cluster", crashed("a"))
    known.note("cluster", crashed("b"))
    assert len(known.troubles("cluster", [present])) == told


async def test_a_place_begins_anew_after_a_while_without_a_crash() -> None:
    clock = FakeClock()
    known = CrashedPods(clock)
    known.note("cluster", crashed("a"))
    known.note("cluster", crashed("b"))
    await clock.advance(FORGET_SECONDS)
    known.note("cluster", crashed("c"))
    assert known.troubles("cluster", []) == []


def test_pods_that_stay_although_they_have_ended_count_once_each() -> None:
    """Two at one place, and the API server refuses to delete them: every look comes upon both."""
    pods, seen = [crashed("one"), crashed("another")], CrashedPods(FakeClock())
    for _ in range(3):
        for one in pods:
            seen.note("cluster", one)
    (trouble,) = seen.troubles("cluster", pods)
    assert "2 pods in its place" in trouble.sentence
    assert trouble.hopeless_from == math.inf
