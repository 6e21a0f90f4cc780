"""Water filling, exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.resources import Resources, total
from muster.testing import Cluster, Spec, configuration, gang, node, nodes, pod_group, pods, queue, resources

CONFIGURATION = configuration("enqueue, allocate", ["gang"], ["predicates", "proportion"])


def shares(cluster: Cluster) -> dict[str, int]:
    """What each queue deserves, in milli-CPU."""
    outcome = cluster.cycle()
    return {
        name: status.deserved.milli_cpu
        for name, status in outcome.queues.items()
        if status.deserved is not None and cluster.cache.queues[name].jobs
    }


def wanting(name: str, cpu: int, **options: object) -> list[Spec]:
    """A queue whose jobs ask for this many cores, one at a time."""
    return [
        queue(name, **options),  # type: ignore[arg-type]
        pod_group(f"g-{name}", 1, queue=name),
        *pods(f"g-{name}", cpu),
    ]


@pytest.mark.parametrize(
    ("specs", "deserved"),
    [
        pytest.param([*wanting("a", 20), *wanting("b", 20)], {"a": 5000, "b": 5000}, id="equal weights"),
        pytest.param([*wanting("a", 20, weight=3), *wanting("b", 20)], {"a": 7500, "b": 2500}, id="weights"),
        pytest.param([*wanting("a", 2), *wanting("b", 20)], {"a": 2000, "b": 8000}, id="what one leaves"),
        pytest.param([*wanting("a", 2), *wanting("b", 3)], {"a": 2000, "b": 3000}, id="no more than asked for"),
        pytest.param([*wanting("a", 20, capability=resources(4)), *wanting("b", 20)], {"a": 4000, "b": 6000}, id="cap"),
        pytest.param(
            [*wanting("a", 1, guarantee=resources(3)), *wanting("b", 20)], {"a": 3000, "b": 7000}, id="guarantee"
        ),
        pytest.param(
            [*wanting("a", 9), *wanting("b", 9), *wanting("c", 9)], {"a": 3333, "b": 3333, "c": 3334}, id="remainder"
        ),
        pytest.param(
            [*wanting("a", 1), *wanting("b", 3), *wanting("c", 9)], {"a": 1000, "b": 3000, "c": 6000}, id="three rounds"
        ),
        pytest.param(
            [*wanting("a", 20, capability=resources(4)), *wanting("b", 20), *wanting("c", 2)],
            {"a": 4000, "b": 4000, "c": 2000},
            id="no thousandth is lost on the way",
        ),
        pytest.param([*wanting("a", 20, weight=0), *wanting("b", 20)], {"a": 5000, "b": 5000}, id="weight 0 is 1"),
    ],
)
def test_deserved_is_the_weighted_part_of_the_cluster(specs: list[Spec], deserved: dict[str, int]) -> None:
    assert shares(Cluster.of(node("n", cpu=10), specs, configuration=CONFIGURATION)) == deserved


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 30)), min_size=1, max_size=5),
    st.integers(1, 20),
)
def test_nothing_is_lost_and_nobody_gets_more_than_asked_for(queues: list[tuple[int, int]], cores: int) -> None:
    specs = [wanting(f"q{index}", cpu, weight=weight) for index, (weight, cpu) in enumerate(queues)]
    deserved = shares(Cluster.of(node("n", cpu=cores), *specs, configuration=CONFIGURATION))
    asked = {f"q{index}": cpu * 1000 for index, (_, cpu) in enumerate(queues)}
    assert all(amount <= asked[name] for name, amount in deserved.items())
    assert sum(deserved.values()) == min(cores * 1000, sum(asked.values()))


def test_a_pod_that_fits_what_is_deserved_exactly_is_not_kept_out_by_rounding() -> None:
    """Five cores by three are no whole number, but two cores for the queue that may have two are what comes out."""
    others = [*wanting("b", 5), *wanting("c", 1)]
    queue_of_two = queue("a", capability=resources(2))
    gang_of_two = gang("two", 1, 2, queue="a")
    cluster = Cluster.of(node("n", cpu=5), others, queue_of_two, gang_of_two, configuration=CONFIGURATION)
    cluster.add(pods("two", 1, 2, first=1))
    cluster.cycle()
    assert cluster.cache.queues["a"].deserved == resources(2)
    assert "two-w-0" in cluster.placed()


def test_queues_that_use_the_same_part_of_what_they_deserve_go_by_age() -> None:
    """Ten cores by three: a third of 3333.3 and of 6666.6 is the same part, whatever rounding makes of them."""
    old = [queue("old"), pod_group("a", 0, queue="old"), *pods("a", 1, node="n"), *pods("a", 9, first=1)]
    young = [queue("young", 2), pod_group("b", 0, queue="young"), *pods("b", 2, node="n"), *pods("b", 9, first=2)]
    cluster = Cluster.of(node("n", cpu=10), old, young, configuration=CONFIGURATION)
    assert cluster.cycle().bindings[0].pod == "a-w-1"


def test_pods_are_no_quota_and_gated_pods_ask_for_nothing() -> None:
    cluster = Cluster.of(node("n", cpu=10), wanting("a", 2), pods("g-a", 3, first=5, gated=True))
    cluster.configuration = CONFIGURATION
    cluster.cycle()
    assert cluster.cache.queues["a"].deserved == resources(2)


def test_a_queue_that_uses_all_it_deserves_gets_no_more() -> None:
    cluster = Cluster.of(node("n", cpu=4), wanting("a", 4), wanting("b", 4), configuration=CONFIGURATION)
    outcome = cluster.cycle()
    assert len(outcome.bindings) == 4
    assert {name: outcome.queues[name].share for name in "ab"} == {"a": 1.0, "b": 1.0}
    assert all(outcome.queues[name].overused for name in "ab")


def test_what_a_queue_leaves_wakes_the_waiting_gang_of_another() -> None:
    cluster = Cluster.of(node("n", cpu=4), queue("a"), queue("b"), gang("x", 2, queue="a"), gang("y", 3, queue="b"))
    cluster.configuration = CONFIGURATION
    cluster.settle(cluster.cycle())
    assert not cluster.cycle().bindings
    cluster.delete("x-w-0", "x-w-1")
    assert len(cluster.cycle().bindings) == 3


def test_a_resource_that_the_cluster_does_not_have_is_given_to_nobody() -> None:
    cluster = Cluster.of(
        node("n"),
        queue("q", capability=resources(2, gpu=4)),
        gang("g", 1, gpu=1, queue="q"),
        gang("h", 1, queue="q"),
        configuration=CONFIGURATION,
    )
    cluster.cycle()
    deserved = cluster.cache.queues["q"].deserved
    assert deserved is not None
    assert deserved.get("nvidia.com/gpu") == 0
    assert total([deserved]) == Resources(1000)


def test_a_queue_reports_what_the_queues_below_it_use_and_a_circle_ends() -> None:
    specs = [
        replace(queue("a"), parent="mid"),
        replace(queue("mid"), parent=""),
        replace(queue("x"), parent="y"),
        replace(queue("y"), parent="x"),
    ]
    cluster = Cluster.of(nodes("n", 2), specs, gang("g", 2, queue="a"))
    cluster.add(pod_group("h", 1, queue="x"), pods("h", 1, node="n-0"))
    outcome = cluster.cycle()
    used = {name: status.allocated.milli_cpu for name, status in outcome.queues.items()}
    assert used == {"a": 2000, "mid": 2000, "root": 2000, "default": 0, "x": 1000, "y": 1000}
