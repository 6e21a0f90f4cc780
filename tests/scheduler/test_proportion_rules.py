"""What proportion decides with what it has shared out: who goes first, who is full, who is admitted, who gives back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.resources import Resources
from muster.scheduler.specs import Phase, TaskStatus
from muster.testing import (
    Cluster,
    Spec,
    bindings,
    configuration,
    evictions,
    gang,
    node,
    plugin,
    pod,
    pod_group,
    pods,
    queue,
    resources,
)

FAIR = configuration("enqueue, allocate", ["gang"], ["predicates", "proportion"])
TAKING = configuration("enqueue, allocate, reclaim", ["gang"], ["predicates", "proportion"])
ORDER = configuration(
    "allocate", ["gang"], ["predicates", plugin("proportion", enabledOverused=False, enabledAllocatable=False)]
)
GI = 1024**3


def uses(queue_name: str, cpu: float, memory: float = 0) -> list[Spec]:
    """So much of the queue is in use."""
    name = f"of-{queue_name}"
    return [pod_group(name, 1, queue=queue_name, phase=Phase.RUNNING), pod(f"{name}-0", name, cpu, memory, node="n")]


@pytest.mark.parametrize(
    ("specs", "winner"),
    [
        pytest.param([queue("a"), queue("b"), *uses("a", 2), *uses("b", 1)], "b", id="the smaller share"),
        pytest.param([queue("a", weight=4), queue("b"), *uses("a", 2), *uses("b", 1)], "a", id="by weight"),
        pytest.param([queue("a"), queue("b", priority=1), *uses("b", 2)], "b", id="priority before share"),
        pytest.param([queue("a", priority=2), queue("b", priority=1), *uses("a", 2)], "a", id="the higher priority"),
        pytest.param([queue("a"), queue("b"), *uses("a", 1, 6), *uses("b", 1)], "b", id="the largest share counts"),
        pytest.param([queue("a"), queue("b")], "a", id="age where nothing tells them apart"),
    ],
)
def test_the_queue_with_the_highest_priority_then_the_smallest_share_goes_first(specs: list[Spec], winner: str) -> None:
    used = sum(each.request.milli_cpu for each in specs if hasattr(each, "request")) // 1000
    whole = [node("n", used + 1, 16), *specs]
    waits = [[pod_group(f"x-{name}", 1, queue=name), *pods(f"x-{name}", 9)] for name in "ab"]
    assert list(bindings(Cluster.of(*whole, *waits, configuration=ORDER).cycle())) == [f"x-{winner}-w-0"]


@pytest.mark.parametrize(
    ("cap", "deserved"),
    [
        pytest.param(resources(2, 2), {"gpu": 4}, id="a scalar that the cap does not name is unlimited"),
        pytest.param(resources(2, 2, gpu=1), {"gpu": 1}, id="one that it names is limited"),
        pytest.param(resources(0, 2), {"cpu": 8}, id="cpu 0 is no limit"),
        pytest.param(resources(2, 0), {"memory": 8}, id="memory 0 is no limit"),
    ],
)
def test_a_cap_limits_what_it_names(cap: Resources, deserved: dict[str, int]) -> None:
    cluster = Cluster.of(node("n", 8, 8, gpu=4), queue("q", capability=cap), configuration=FAIR)
    cluster.add(pod_group("g", 1, queue="q"), pods("g", 9, 1, 1, gpu=1))
    cluster.cycle()
    found = cluster.cache.queues["q"].deserved
    assert found is not None
    amounts = {"cpu": found.milli_cpu // 1000, "memory": found.memory // GI, "gpu": found.get("nvidia.com/gpu") // 1000}
    assert {name: amounts[name] for name in deserved} == deserved


def test_a_remainder_that_nobody_can_use_ends_the_sharing() -> None:
    cluster = Cluster.of(node("n", 10, 10), queue("a"), queue("b"), configuration=FAIR)
    cluster.add(pod_group("g", 1, queue="a"), pods("g", 8, 1, 0.5), pod_group("h", 1, queue="b"), pods("h", 8, 0.5, 1))
    cluster.cycle()
    found = {name: cluster.cache.queues[name].deserved for name in "ab"}
    assert found == {"a": resources(6, 4), "b": resources(4, 6)}


@pytest.mark.parametrize(
    "hopeless",
    [
        pytest.param(gang("a", 1, 100, queue="a"), id="larger than every node"),
        pytest.param(gang("a", 30, 1, queue="a"), id="larger than the cluster"),
        pytest.param([pod_group("a", 20, queue="a"), *pods("a", 19)], id="pods are missing"),
        pytest.param(
            [pod_group("a", 2, queue="a", roles={"head": 1, "worker": 1}), *pods("a", 19, role="worker")],
            id="a role is missing",
        ),
        pytest.param(
            [replace(pod_group("a", 1, queue="a"), problem="spec: wrong"), *pods("a", 19)], id="its PodGroup is broken"
        ),
        pytest.param(
            [pod_group("empty", 1, queue="a"), *pods("of-nobody", 19)], id="pods of a PodGroup that does not exist"
        ),
    ],
)
def test_what_could_not_be_placed_takes_no_part_of_the_cluster(hopeless: list[Spec]) -> None:
    cluster = Cluster.of(node("n", 20), queue("a"), queue("b"), configuration=FAIR)
    cluster.add(hopeless, gang("b", 16, queue="b"))
    cluster.run()
    assert sum(name.startswith("b-") for name in cluster.placed()) == 16


def test_a_gang_that_can_be_placed_again_gets_its_part_again() -> None:
    cluster = Cluster.of(node("n", 10), queue("a"), queue("b"), gang("a", 1, 12, queue="a"), configuration=FAIR)
    cluster.add(gang("b", 9, queue="b"))
    cluster.run()
    assert len(cluster.placed()) == 9
    cluster.add(node("large", 16))
    cluster.run()
    assert cluster.placed()["a-w-0"] == "large"


RUNNING = [pod_group("r", 1, min_resources=resources(2), phase=Phase.RUNNING, queue="q"), *pods("r", 3, node="n")]


@pytest.mark.parametrize(
    ("specs", "most"),
    [
        pytest.param([], 10, id="an empty queue"),
        pytest.param(RUNNING, 8, id="what runs above its minimum could give way"),
        pytest.param(
            [pod_group("i", 1, min_resources=resources(4), phase=Phase.INQUEUE, queue="q")], 6, id="what is admitted"
        ),
        pytest.param(
            [
                pod_group("i", 2, min_resources=resources(4), phase=Phase.INQUEUE, queue="q"),
                *pods("i", 2, 2, node="n", status=TaskStatus.BOUND),
            ],
            6,
            id="what is admitted and has its nodes is counted once",
        ),
        pytest.param(
            [
                pod_group("r", 1, min_resources=resources(4), phase=Phase.RUNNING, queue="q"),
                *pods("r", 1, 1, node="n"),
            ],
            6,
            id="what a running gang lacks of its minimum",
        ),
        pytest.param(
            [pod_group("p", 1, min_resources=resources(40), phase=Phase.PENDING, queue="q")], 10, id="not who waits"
        ),
    ],
)
def test_admission_counts_what_is_used_and_promised_less_what_is_elastic(specs: list[Spec], most: int) -> None:
    for asked, expected in ((most, Phase.INQUEUE), (most + 1, Phase.PENDING)):
        cluster = Cluster.of(node("n", 20), queue("q", capability=resources(10)), specs, configuration=FAIR)
        cluster.add(pod_group("new", 1, min_resources=resources(asked), queue="q"))
        cluster.cycle()
        assert cluster.phase("new") is expected, asked


@pytest.mark.parametrize(
    ("held", "gone"),
    [
        pytest.param([(2, 0)] * 4, 2, id="down to what it deserves"),
        pytest.param([(1, 0)] * 4, 0, id="who is within it keeps all"),
        pytest.param([(1, 2)] * 5, 1, id="above it in memory alone"),
    ],
)
def test_a_queue_gives_back_while_it_is_above_what_it_deserves_in_any_dimension(
    held: list[tuple[float, float]], gone: int
) -> None:
    cpu, memory = sum(each for each, _ in held), sum(each for _, each in held)
    cluster = Cluster.of(node("n", max(cpu, 8), max(memory, 10)), queue("rich"), queue("poor"), configuration=TAKING)
    cluster.add(pod_group("r", 0, queue="rich", phase=Phase.RUNNING))
    cluster.add([pod(f"r-w-{index}", "r", *each, node="n") for index, each in enumerate(held)])
    cluster.add(pod_group("p", 1, queue="poor", phase=Phase.INQUEUE), pod("p-0", "p", 4, 2 if memory else 0))
    assert len(evictions(cluster.cycle())) == gone


def test_a_full_queue_is_overused_and_an_empty_one_is_not() -> None:
    cluster = Cluster.of(node("n", 2), queue("q"), queue("idle"), gang("g", 2, queue="q"), configuration=FAIR)
    cluster.add(pod_group("done", 1, queue="idle", phase=Phase.COMPLETED))
    cluster.add(pod("done-0", "done", node="n", status=TaskStatus.SUCCEEDED))
    outcome = cluster.cycle()
    assert (outcome.queues["q"].overused, outcome.queues["idle"].overused) == (True, False)
