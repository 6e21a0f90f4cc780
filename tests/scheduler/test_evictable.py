"""Who may be evicted: how plugins' answers are combined, and what the plugins answer."""

from __future__ import annotations

from typing import Any

import pytest

from muster.scheduler.evictable import EvictionContext
from muster.scheduler.framework import Framework, Plugin
from muster.scheduler.plugins import PLUGINS
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.session import Session
from muster.scheduler.specs import PriorityClassSpec
from muster.scheduler.task import TaskInfo
from muster.testing import Cluster, nodes, pod, pod_group, pods, queue, resources
from tests.scheduler.test_framework import saying

Names = list[str] | None


def session_of(cluster: Cluster, *tiers: list[Plugin], flags: dict[str, bool] | None = None) -> Session:
    framework = Framework([[(plugin, flags or {}) for plugin in tier] for tier in tiers])
    session = Session(cluster.cache, framework, cluster.configuration, cluster.now)
    session.settle()
    for plugin in framework.plugins:
        plugin.on_session_open(session)
    return session


def task(session: Session, name: str) -> TaskInfo:
    return session.cache.tasks[f"uid-{name}"]


def tasks(session: Session, names: str) -> list[TaskInfo]:
    return [task(session, name) for name in names.split()]


def named(victims: list[TaskInfo]) -> str:
    return " ".join(victim.spec.name for victim in victims)


def four() -> Cluster:
    return Cluster.of(nodes("n", 1), [pod(name, node="n-0") for name in "abcd"], pod("p"))


@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
@pytest.mark.parametrize(
    ("tiers", "victims"),
    [
        ([], ""),
        ([[None]], ""),
        ([["a b"]], "a b"),
        ([["a b", "b c"]], "b"),
        ([["a b", None, "b c"]], "b"),
        ([["a b", "", "a"]], ""),
        ([["a b", ""], ["c"]], "c"),
        ([[None], ["c d"]], "c d"),
        ([["a"], ["c d"]], "a"),
        ([["a", "b", "c d"]], "c d"),
        ([["a", "b"], ["d"]], "d"),
        ([["a", "b", "c", "d"]], ""),
    ],
    ids=[
        "nobody is asked: nobody goes",
        "all abstain: nobody goes",
        "one permits",
        "answers are intersected",
        "who abstains does not count",
        "who rejects all ends the tier",
        "and the next tier is asked",
        "a tier that abstains leaves it to the next",
        "the first tier with victims decides",
        "an empty intersection is started anew by the next plugin",
        "and is no opinion when it ends the tier",
        "also twice in a row",
    ],
)
def test_victims_are_those_that_the_first_tier_with_an_opinion_agrees_on(
    point: str, tiers: list[list[str | None]], victims: str
) -> None:
    cluster = four()
    find = cluster.cache.tasks
    answers = [
        [saying(point, None if names is None else [find[f"uid-{name}"] for name in names.split()]) for names in tier]
        for tier in tiers
    ]
    session = session_of(cluster, *answers)
    for_whom: Any = task(session, "p")
    if point == "unified_evictable":
        for_whom = EvictionContext("gangpreempt", task(session, "p").job)  # type: ignore[arg-type]
    assert named(getattr(session.framework, point)(session, for_whom, tasks(session, "a b c d"))) == victims


@pytest.mark.parametrize(
    ("point", "flag"),
    [("preemptable", "enablePreemptable"), ("reclaimable", "enableReclaimable"), ("unified_evictable", None)],
)
def test_a_plugin_whose_flag_is_off_is_not_asked_about_victims(point: str, flag: str | None) -> None:
    cluster = four()
    off = {"enablePreemptable": False, "enableReclaimable": False}
    session = session_of(cluster, [saying(point, [cluster.cache.tasks["uid-a"]])], flags=off)
    victims = getattr(session.framework, point)(session, task(session, "p"), tasks(session, "a b"))
    assert named(victims) == ("" if flag else "a")


@pytest.mark.parametrize(("tiers", "chosen"), [([], ""), ([["b"], ["c"]], "b"), ([[""], ["c", "a"]], "a c")])
def test_the_first_tier_that_names_any_says_which_running_tasks_should_leave(
    tiers: list[list[str]], chosen: str
) -> None:
    cluster = four()
    plugins = [
        [saying("victim_tasks", [cluster.cache.tasks[f"uid-{name}"] for name in names.split()]) for names in tier]
        for tier in tiers
    ]
    session = session_of(cluster, *plugins)
    assert named(session.framework.victim_tasks(session, tasks(session, "a b c d"))) == chosen


def test_every_plugin_must_let_a_queue_reclaim() -> None:
    no = Reason(Code.QUEUE_QUOTA)
    cases: list[tuple[list[list[Reason | None]], Reason | None]] = [
        ([], None),
        ([[None], [None]], None),
        ([[None], [no]], no),
    ]
    for tiers, objection in cases:
        session = session_of(four(), *[[saying("preemptive", answer) for answer in tier] for tier in tiers])
        assert session.framework.preemptive(session, session.cache.queues["default"], []) == objection


def test_the_first_plugin_that_minds_says_which_queue_loses_its_pods_first() -> None:
    session = session_of(four(), [saying("victim_queue_order", 0, -1)], [saying("victim_queue_order", 1)])
    one = session.cache.queues["default"]
    assert session.framework.compare_victim_queues(session, one, one, one) == -1
    session = session_of(four())
    assert session.framework.compare_victim_queues(session, one, one, one) == 0


@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
def test_conformance_spares_pods_that_the_cluster_lives_on(point: str) -> None:
    cluster = four()
    cluster.change_pod("b", priority_class="system-node-critical")
    cluster.change_pod("c", namespace="kube-system")
    cluster.change_pod("d", priority_class="system-cluster-critical")
    session = session_of(cluster, [PLUGINS["conformance"]({})])
    assert named(getattr(session.framework, point)(session, task(session, "p"), tasks(session, "a b c d"))) == "a"


@pytest.mark.parametrize("point", ["preemptable", "reclaimable"])
def test_no_later_tier_lets_a_pod_go_that_conformance_protects(point: str) -> None:
    """In Volcano a tier that lets nobody go is no opinion, and the next one would be asked about kube-system."""
    cluster = four()
    cluster.change_pod("b", namespace="kube-system")
    both = [cluster.cache.tasks["uid-a"], cluster.cache.tasks["uid-b"]]
    session = session_of(cluster, [PLUGINS["conformance"]({})], [saying(point, both)])
    decide = getattr(session.framework, point)
    assert named(decide(session, task(session, "p"), tasks(session, "b"))) == ""
    assert named(decide(session, task(session, "p"), tasks(session, "a b"))) == "a"


def test_priority_lets_jobs_of_lower_priority_and_lower_tasks_of_the_same_job_go() -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=9),
        [PriorityClassSpec("high", 100), PriorityClassSpec("low", 1)],
        [pod_group(name, priority_class=name) for name in ("high", "low")],
        pod_group("same", priority_class="high"),
        pod("low-0", "low", node="n-0", priority=1000),
        pod("same-0", "same", node="n-0"),
        pod("high-0", "high", node="n-0", priority=5),
        pod("high-1", "high", node="n-0", priority=4),
        pod("p", "high", priority=5),
    )
    session = session_of(cluster, [PLUGINS["priority"]({})])
    candidates = tasks(session, "low-0 same-0 high-0 high-1")
    assert named(session.framework.preemptable(session, task(session, "p"), candidates)) == "low-0 high-1"
    assert session.framework.reclaimable(session, task(session, "p"), candidates) == []


@pytest.mark.parametrize("point", ["preemptable", "reclaimable"])
def test_gang_lets_only_the_surplus_go_in_the_order_given(point: str) -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=9),
        pod_group("a", 2),
        pods("a", 3, node="n-0"),
        pod_group("b", 0),
        pods("b", 2, node="n-0"),
        pod("p"),
    )
    session = session_of(cluster, [PLUGINS["gang"]({})])
    candidates = tasks(session, "a-w-2 b-w-0 a-w-1 b-w-1")
    victims = getattr(session.framework, point)(session, task(session, "p"), candidates)
    assert named(victims) == "a-w-2 b-w-0 b-w-1"


@pytest.mark.parametrize("point", ["preemptable", "reclaimable"])
def test_gang_keeps_the_roles_that_the_gang_can_not_do_without(point: str) -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=9),
        pod_group("a", 2, roles={"head": 1, "worker": 1}),
        [pod("a-head", "a", role="head", node="n-0"), *pods("a", 3, role="worker", node="n-0")],
        pod("p"),
    )
    session = session_of(cluster, [PLUGINS["gang"]({})])
    candidates = tasks(session, "a-head a-w-2 a-w-1 a-w-0")
    assert named(getattr(session.framework, point)(session, task(session, "p"), candidates)) == "a-w-2 a-w-1"


def test_drf_lets_a_job_keep_no_less_than_the_preemptor_would_have() -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=10),
        pod_group("big"),
        pods("big", 5, node="n-0"),
        pod_group("small"),
        pods("small", 2, node="n-0"),
        pod_group("mine"),
        pods("mine", 1, node="n-0"),
        pod("p", "mine", cpu=1),
    )
    session = session_of(cluster, [PLUGINS["drf"]({})])
    candidates = tasks(session, "small-w-1 big-w-4 big-w-3 big-w-2 big-w-1")
    # With its pod `mine` has 2 of 10; `big` may sink from 5 to 2, `small` from 2 to no less than 2.
    assert named(session.framework.preemptable(session, task(session, "p"), candidates)) == "big-w-4 big-w-3 big-w-2"


def test_proportion_takes_from_queues_above_what_they_deserve_and_only_up_to_it() -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=4),
        queue("q1"),
        queue("q2"),
        pod_group("a", 0, queue="q1"),
        pods("a", 4, node="n-0"),
        pod_group("b", 0, queue="q2"),
        pods("b", 4),
    )
    session = session_of(cluster, [PLUGINS["proportion"]({})])
    assert session.cache.queues["q1"].deserved == resources(2)
    candidates = tasks(session, "a-w-3 a-w-2 a-w-1")
    assert named(session.framework.reclaimable(session, task(session, "b-w-0"), candidates)) == "a-w-3 a-w-2"
    of_q2 = session.cache.queues["q2"]
    assert session.framework.preemptive(session, of_q2, tasks(session, "b-w-0 b-w-1")) is None
    objection = session.framework.preemptive(session, of_q2, tasks(session, "b-w-0 b-w-1 b-w-2"))
    assert objection is not None
    assert objection.code is Code.QUEUE_QUOTA


def test_a_queue_exactly_at_what_it_deserves_loses_nothing() -> None:
    cluster = Cluster.of(
        nodes("n", 1, cpu=4),
        [queue(name) for name in ("q1", "q2")],
        pod_group("a", 0, queue="q1"),
        pods("a", 2, node="n-0"),
        pod_group("b", 0, queue="q2"),
        pods("b", 4),
    )
    session = session_of(cluster, [PLUGINS["proportion"]({})])
    assert session.framework.reclaimable(session, task(session, "b-w-0"), tasks(session, "a-w-1")) == []
