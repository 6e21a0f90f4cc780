"""Who is admitted: Pending becomes Inqueue."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from muster.scheduler.conf import load_configuration
from muster.scheduler.plugins.overcommit import Overcommit
from muster.scheduler.reasons import Code, ReasonClass
from muster.scheduler.specs import Condition, Phase, QueueState
from muster.testing import Cluster, Spec, configuration, gang, node, nodes, pod, pod_group, pods, queue, resources

OVERCOMMIT = configuration("enqueue", ["gang"], ["overcommit"])
PROPORTION = configuration("enqueue", ["gang"], ["proportion"])


def admitted(cluster: Cluster) -> set[str]:
    cluster.cycle()
    return {job.key.partition("/")[2] for job in cluster.cache.jobs.values() if job.phase is Phase.INQUEUE}


def group(name: str, cpu: float | None, **options: object) -> Spec:
    least = None if cpu is None else resources(cpu)
    return pod_group(name, 1, min_resources=least, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        pytest.param([group("a", 12)], {"a"}, id="up to 1.2 times the cluster"),
        pytest.param([group("a", 12.001)], set(), id="and not a thousandth more"),
        pytest.param([group("a", None)], {"a"}, id="without minResources always"),
        pytest.param([group("a", 8), group("b", 5), group("c", 4)], {"a", "c"}, id="a refused one holds up nobody"),
        pytest.param([group("a", 12), group("b", 1)], {"a"}, id="admitted gangs are counted"),
        pytest.param([pod("x", node="n", cpu=8), group("a", 5), group("b", 4)], {"b"}, id="used resources are off"),
        pytest.param([pod("x", node="n", memory=99), group("a", 5)], {"a"}, id="only what is asked for is compared"),
        pytest.param([pod_group("a", min_resources=resources(gpu=1))], set(), id="a resource that is not there"),
    ],
)
def test_overcommit_admits_what_idle_times_the_factor_covers(specs: list[Spec], expected: set[str]) -> None:
    cluster = Cluster.of(node("n", cpu=10), specs, configuration=OVERCOMMIT)
    assert admitted(cluster) - {"podgroup-uid-x"} == expected


@pytest.mark.parametrize(("given", "factor"), [(None, 1.2), (0.8, 1.2), (2, 2), (1.1, 1.1)])
def test_a_factor_below_one_means_the_default(given: float | None, factor: float) -> None:
    arguments = {} if given is None else {"overcommit-factor": given}
    loaded = load_configuration(
        {"actions": "enqueue", "tiers": [{"plugins": [{"name": "overcommit", "arguments": arguments}]}]}
    )
    plugin = Overcommit(dict(loaded.tiers[0][0].arguments))
    assert plugin.factor == Fraction(str(factor))


@pytest.mark.parametrize(
    ("queue_spec", "expected"),
    [
        (queue("q"), {"a", "b"}),
        (queue("q", capability=resources(6)), {"a"}),
        (queue("q", capability=resources(0, 100)), {"a", "b"}),
        (queue("q", capability=resources(4)), set()),
        (queue("q", state=QueueState.CLOSED), set()),
        (queue("q", state=QueueState.CLOSING), set()),
        (queue("q", state=QueueState.UNKNOWN), set()),
    ],
)
def test_proportion_admits_what_the_queue_could_ever_have(queue_spec: Spec, expected: set[str]) -> None:
    specs = [group("a", 5, queue="q"), group("b", 5, queue="q")]
    assert admitted(Cluster.of(node("n", cpu=10), queue_spec, specs, configuration=PROPORTION)) == expected


def test_the_guarantee_of_another_queue_is_kept_free() -> None:
    specs = [queue("a"), queue("b", guarantee=resources(4)), group("x", 7, queue="a"), group("y", 10, queue="b")]
    assert admitted(Cluster.of(node("n", cpu=10), specs, configuration=PROPORTION)) == {"y"}


@pytest.mark.parametrize("name", ["default", "root"])
def test_the_default_queues_exist_without_being_given(name: str) -> None:
    assert admitted(Cluster.of(group("a", None, queue=name), configuration=OVERCOMMIT)) == {"a"}


def test_a_missing_queue_holds_its_gangs_until_it_is_made() -> None:
    cluster = Cluster.of(nodes("n", 1), gang("g", 1, queue="later"))
    cluster.cycle()
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert (reason.code, reason.queue) == (Code.QUEUE_MISSING, "later")
    cluster.add(queue("later"))
    assert len(cluster.cycle().bindings) == 1


def test_a_closed_queue_starts_nothing_and_touches_nothing_that_runs() -> None:
    cluster = Cluster.of(nodes("n", 1), queue("q"), gang("g", 2, min_member=1, queue="q"))
    cluster.cache.set_task(pod("late", "g", gated=True))
    cluster.run()
    cluster.add(queue("q", state=QueueState.CLOSING), gang("new", 1, queue="q"))
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert not outcome.evictions
    assert cluster.phase("g") is Phase.RUNNING
    reason = outcome.pod_groups["default/new"].reason
    assert reason is not None
    assert reason.code is Code.QUEUE_CLOSED


def test_a_gang_whose_pods_no_node_can_hold_reserves_nothing() -> None:
    """It is said at once, and the gang behind it is admitted."""
    cluster = Cluster.of(node("n", cpu=10), gang("huge", 1, 11), gang("fits", 1, 10))
    outcome = cluster.cycle()
    assert {each.pod for each in outcome.bindings} == {"fits-w-0"}
    reason = outcome.pod_groups["default/huge"].reason
    assert reason is not None
    assert reason.reason_class is ReasonClass.NEVER


def test_a_gang_without_pods_yet_is_admitted() -> None:
    cluster = Cluster.of(node("n"), pod_group("g", 3, min_resources=resources(3)))
    assert admitted(cluster) == {"g"}
    cluster.add(pods("g", 3))
    assert len(cluster.cycle().bindings) == 3


def test_an_admitted_gang_gives_its_reservation_back_in_time_and_others_pass() -> None:
    """P7; volcano#5006."""
    cluster = Cluster.of(node("n", cpu=10), pod_group("empty", 3, min_resources=resources(9)), gang("g", 4, 1))
    assert cluster.cycle().wake_at == cluster.now + 300
    assert cluster.phase("g") is Phase.PENDING
    outcome = cluster.cycle(seconds=300)
    assert len(outcome.bindings) == 4
    assert cluster.phase("empty") is Phase.INQUEUE
    cluster.add(pods("empty", 3))
    assert len(cluster.cycle().bindings) == 3, "it kept its turn"


def test_no_time_in_the_future_keeps_a_reservation() -> None:
    waits = Condition("Unschedulable", True, last_transition=Cluster().now + 1e9)
    empty = pod_group("empty", 3, min_resources=resources(9), phase=Phase.INQUEUE)
    cluster = Cluster.of(node("n", cpu=10), replace(empty, conditions=(waits,)), gang("g", 4, 1))
    assert cluster.cycle().wake_at == cluster.now + 300
    assert len(cluster.cycle(seconds=300).bindings) == 4


@pytest.mark.parametrize("least", [0, -1])
def test_a_podgroup_without_minimum_and_pods_is_completed_and_reserves_nothing(least: int) -> None:
    cluster = Cluster.of(node("n"), pod_group("g", least, min_resources=resources(3)))
    cluster.cycle()
    assert cluster.phase("g") is Phase.COMPLETED
    assert cluster.cache.promised.is_empty()


@pytest.mark.parametrize("phase", [Phase.INQUEUE, Phase.RUNNING])
def test_a_podgroup_that_has_become_empty_reserves_nothing_from_the_first_cycle_on(phase: Phase) -> None:
    empty = pod_group("empty", 0, min_resources=resources(9), phase=phase)
    cluster = Cluster.of(node("n", cpu=10), empty, gang("g", 10, 1))
    assert len(cluster.cycle().bindings) == 10
