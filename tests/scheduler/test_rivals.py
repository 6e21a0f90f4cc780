"""Nobody wins back what it lost, neither directly nor round the corner, until something has changed."""

from __future__ import annotations

from dataclasses import replace

from muster.scheduler.rivals import Rivals
from muster.scheduler.specs import QueueSpec
from muster.scheduler.task import TaskInfo
from muster.testing import Cluster, node, pod, pod_group, queue, resources


class Feud:
    """Three gangs with a pod each."""

    def __init__(self) -> None:
        self.cluster = Cluster.of(node("n"), queue("q1"), queue("q2"))
        for name, of in (("a", "q1"), ("b", "q2"), ("c", "q2")):
            self.cluster.add(pod_group(name, 0, queue=of), pod(name, name, node="n"))
        for each in ("q1", "q2"):
            self.cluster.cache.queues[each].deserved = resources(2)

    @property
    def rivals(self) -> Rivals:
        return self.cluster.cache.rivals

    def task(self, name: str) -> TaskInfo:
        return self.cluster.cache.tasks[f"uid-{name}"]

    def take(self, winner: str, victim: str) -> None:
        self.rivals.take([self.task(winner)], [self.task(victim)])

    def may_take(self, job: str, candidate: str) -> bool:
        return self.rivals.may_take(self.cluster.cache.jobs[f"default/{job}"], self.task(candidate))


def test_the_loser_may_not_take_the_room_back_but_the_others_may() -> None:
    feud = Feud()
    feud.take("a", "b")
    assert not feud.may_take("b", "a")
    assert feud.may_take("c", "a")
    assert feud.may_take("a", "b")


def test_whoever_takes_the_room_next_may_keep_it_from_all_who_lost_it() -> None:
    feud = Feud()
    feud.take("a", "b")
    feud.take("c", "a")
    assert not feud.may_take("b", "c")
    assert not feud.may_take("a", "c")


def test_it_is_remembered_while_the_pod_changes() -> None:
    feud = Feud()
    feud.take("a", "b")
    feud.cluster.change_pod("a", priority=7)
    assert not feud.may_take("b", "a")


def test_a_change_of_either_pod_group_lifts_the_ban() -> None:
    for name in ("a", "b"):
        feud = Feud()
        feud.take("a", "b")
        spec = feud.cluster.cache.jobs[f"default/{name}"].spec
        assert spec is not None
        feud.cluster.cache.set_pod_group(replace(spec, running=1))
        assert not feud.may_take("b", "a"), "what the status says is no change"
        feud.cluster.cache.set_pod_group(replace(spec, min_member=1))
        assert feud.may_take("b", "a")


def test_a_change_of_a_queue_lifts_the_ban() -> None:
    feud = Feud()
    feud.take("a", "b")
    feud.cluster.cache.set_queue(QueueSpec("q1", weight=7))
    assert feud.may_take("b", "a")


def test_a_loser_that_deserves_more_or_a_winner_that_deserves_less_lifts_the_ban() -> None:
    for name, cpu, lifted in (("q2", 3, True), ("q2", 1, False), ("q1", 1, True), ("q1", 3, False)):
        feud = Feud()
        feud.take("a", "b")
        feud.cluster.cache.queues[name].deserved = resources(cpu)
        assert feud.may_take("b", "a") is lifted, (name, cpu)


def test_a_gang_bans_nobody_from_its_own_room() -> None:
    feud = Feud()
    feud.take("a", "b")
    feud.take("b", "a")
    assert feud.may_take("b", "b")
    assert not feud.may_take("a", "b")
