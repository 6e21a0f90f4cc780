"""What queues are guaranteed is kept from the others even beyond what there is, and who waits for it is told."""

from __future__ import annotations

import pytest

from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.reasons import Code, Reason, describe
from muster.scheduler.specs import QueueSpec
from muster.testing import Cluster, Spec, bindings, configuration, gang, node, plugin, queue, resources

PROPORTION = configuration("enqueue, allocate", ["gang"], ["predicates", "proportion"])
UNADMITTED = configuration("allocate", ["gang"], ["predicates", "proportion"])
FLAT = configuration("enqueue, allocate", ["gang"], ["predicates", "capacity"])
FLAT_UNADMITTED = configuration("allocate", ["gang"], ["predicates", "capacity"])
TREE = configuration("enqueue, allocate", ["gang"], ["predicates", plugin("capacity", {}, enableHierarchy=True)])

SHARING = pytest.mark.parametrize(
    "conf",
    [
        pytest.param(PROPORTION, id="proportion, admission"),
        pytest.param(UNADMITTED, id="proportion, placing"),
        pytest.param(FLAT, id="capacity, admission"),
        pytest.param(FLAT_UNADMITTED, id="capacity, placing"),
    ],
)


def why(cluster: Cluster, name: str = "g") -> str:
    """The reason of a gang that waits for quota, in words."""
    cluster.cycle()
    reason: Reason | None = cluster.cache.jobs[f"default/{name}"].reason
    assert reason is not None
    assert reason.code is Code.QUEUE_QUOTA
    return describe(reason)


@SHARING
def test_a_guarantee_above_the_cluster_is_named_to_those_that_it_leaves_nothing(conf: SchedulerConfiguration) -> None:
    cluster = Cluster.of(node("n", 64), queue("greedy", guarantee=resources(99999)), gang("g", 1), configuration=conf)
    message = why(cluster)
    assert "queue default has too little quota left: asked for cpu 1, used cpu 0 of cpu 0" in message
    assert message.endswith(", because queue greedy is guaranteed cpu 99999 of 64")


@SHARING
def test_who_waits_for_a_guarantee_goes_on_when_it_is_lowered(conf: SchedulerConfiguration) -> None:
    cluster = Cluster.of(node("n", 64), queue("greedy", guarantee=resources(99999)), gang("g", 1), configuration=conf)
    why(cluster)
    cluster.add(queue("greedy", guarantee=resources(63)))
    assert bindings(cluster.cycle()) == {"g-w-0": "n"}


@SHARING
def test_guarantees_that_add_up_to_more_than_the_cluster_are_kept_as_far_as_there_is_room(
    conf: SchedulerConfiguration,
) -> None:
    specs = [queue("a", guarantee=resources(6)), queue("b", guarantee=resources(5))]
    cluster = Cluster.of(node("n", 8), specs, gang("x", 6, queue="a"), gang("g", 1), configuration=conf)
    message = why(cluster)
    assert len(cluster.placed()) == 6
    assert message.endswith(", because queues a and b are guaranteed cpu 11 of 8")


@SHARING
@pytest.mark.parametrize(
    ("specs", "words"),
    [
        pytest.param([queue("a", guarantee=resources(6))], "queue a is guaranteed cpu 6 of 8", id="one"),
        pytest.param(
            [queue(name, guarantee=resources(cpu)) for name, cpu in (("a", 1), ("b", 3), ("c", 2))],
            "queues b, c and a are guaranteed cpu 6 of 8",
            id="the largest first",
        ),
        pytest.param(
            [queue(name, guarantee=resources(1)) for name in "abcdefg"],
            "queues a, b, c and 4 others are guaranteed cpu 7 of 8",
            id="not all of many",
        ),
        pytest.param(
            [queue("a", guarantee=resources(6)), queue("m", guarantee=resources(0, 1))],
            "queue a is guaranteed cpu 6 of 8",
            id="only those of what is lacking",
        ),
        pytest.param(
            [queue("a", guarantee=resources(6)), QueueSpec("default", guarantee=resources(1))],
            "queue a is guaranteed cpu 6 of 8",
            id="not the queue's own",
        ),
    ],
)
def test_whose_guarantees_leave_too_little_is_named(
    conf: SchedulerConfiguration, specs: list[Spec], words: str
) -> None:
    cluster = Cluster.of(node("n", 8), specs, gang("g", 4, cpu=1), configuration=conf)
    assert why(cluster).endswith(f", because {words}")


@SHARING
def test_no_guarantee_is_blamed_for_what_the_queue_s_own_cap_refuses(conf: SchedulerConfiguration) -> None:
    specs = [queue("a", guarantee=resources(1)), queue("q", capability=resources(2))]
    cluster = Cluster.of(node("n", 8), specs, gang("first", 2, queue="q"), gang("g", 1, queue="q"), configuration=conf)
    assert "because" not in why(cluster)


def test_no_guarantee_is_blamed_for_what_weights_refuse() -> None:
    specs = [queue("a", guarantee=resources(1)), *gang("x", 4, queue="a"), *gang("g", 4)]
    cluster = Cluster.of(node("n", 4), specs, configuration=UNADMITTED)
    cluster.run()
    assert why(cluster).endswith("of cpu 2, its share of the cluster now")


def test_in_a_tree_the_sibling_whose_guarantee_leaves_too_little_is_named_at_whatever_level() -> None:
    specs: list[Spec] = [
        QueueSpec("root", capability=resources(8)),
        queue("greedy", guarantee=resources(99)),
        queue("p"),
        queue("q", parent="p"),
        queue("r", parent="p", guarantee=resources(1)),
    ]
    cluster = Cluster.of(node("n", 8), specs, gang("g", 1, queue="q"), configuration=TREE)
    assert why(cluster).endswith(", because queue greedy is guaranteed cpu 99 of 8")


def test_in_a_tree_no_guarantee_is_blamed_for_what_the_parent_s_cap_refuses() -> None:
    specs = [queue("p", capability=resources(2)), queue("q", parent="p"), queue("r", guarantee=resources(5))]
    cluster = Cluster.of(node("n", 8), specs, gang("first", 2, queue="q"), gang("g", 1, queue="q"), configuration=TREE)
    assert "because" not in why(cluster)
