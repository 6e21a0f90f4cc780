"""Which node a pod gets: filters, scores, and the index that finds the best without looking at all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.conf import DEFAULT, build_framework
from muster.scheduler.constraints import (
    PodConstraints,
    PreferredTerm,
    SelectorTerm,
    Taint,
    Toleration,
)
from muster.scheduler.neighbours import Neighbours
from muster.scheduler.node import NodeInfo
from muster.scheduler.placement import NodeIndex, fits
from muster.scheduler.plugins import nodeorder
from muster.scheduler.resources import Resources, dominant_share
from muster.scheduler.selectors import Operator, Requirement
from muster.scheduler.shapes import ShapeBook
from muster.scheduler.task import Shape
from muster.testing import Cluster, Spec, bindings, gang, node, nodes, pod, resources


def info(cpu: float = 10, memory: float = 10, used: Resources | None = None, gpu: int | None = None) -> NodeInfo:
    made = NodeInfo("n")
    made.spec = node("n", cpu, memory, gpu=gpu)
    made.used = used or Resources()
    return made


def shape(cpu: float = 0, memory: float = 0, scheduling: PodConstraints | None = None, **scalars: int) -> Shape:
    asked = resources(cpu, memory, **scalars)
    return Shape(1, asked, asked, scheduling or PodConstraints())


@pytest.mark.parametrize(
    ("asked", "used", "least", "most", "balanced"),
    [
        (shape(0, 0), resources(), 100, 0, 100),
        (shape(5, 5), resources(), 50, 50, 100),
        (shape(10, 0), resources(), 50, 50, 50),
        (shape(5, 0), resources(5, 0), 50, 50, 50),
        (shape(2, 4), resources(1, 1), 60, 40, 90),
        (shape(5, 0), resources(9, 0), 50, 50, 50),
    ],
)
def test_resource_scores(asked: Shape, used: Resources, least: int, most: int, balanced: int) -> None:
    assert nodeorder.least_requested(asked, info(used=used)) == least
    assert nodeorder.most_requested(asked, info(used=used)) == most
    assert nodeorder.balanced_allocation(asked, info(used=used)) == balanced


def test_balance_counts_gpus_only_for_pods_that_ask_for_them() -> None:
    assert nodeorder.balanced_allocation(shape(5, 5), info(gpu=2)) == 100
    assert nodeorder.balanced_allocation(shape(5, 5, gpu=2), info(gpu=2)) == 76


ZONE_A = SelectorTerm(labels=(Requirement("zone", Operator.IN, ("a",)),))


@pytest.mark.parametrize(
    ("specs", "where"),
    [
        pytest.param([node("a", cpu=4), node("b", cpu=8), *gang("g", 1)], "b", id="the emptier node"),
        pytest.param([*nodes("n", 3), *gang("g", 1)], "n-0", id="of equal ones the lowest name"),
        pytest.param([node("b"), node("a"), *gang("g", 1)], "a", id="whatever came first"),
        pytest.param([node("a"), pod("x", node="a"), node("b"), *gang("g", 1)], "b", id="less used"),
        pytest.param(
            [
                node("a", cpu=64),
                node("b", labels={"zone": "a"}),
                *gang("g", 1, scheduling=PodConstraints(preferred=(PreferredTerm(1, ZONE_A),))),
            ],
            "b",
            id="a preferred zone outweighs emptiness",
        ),
        pytest.param(
            [node("a", taints=[Taint("t", effect="PreferNoSchedule")]), node("b"), *gang("g", 1)], "b", id="soft"
        ),
        pytest.param(
            [node("a", taints=[Taint("t")]), node("b", cpu=2), *gang("g", 1, scheduling=PodConstraints())],
            "b",
            id="hard",
        ),
        pytest.param(
            [
                node("a", cpu=64, taints=[Taint("t")]),
                node("b", cpu=2),
                *gang("g", 1, scheduling=PodConstraints(tolerations=(Toleration("t", "Exists"),))),
            ],
            "a",
            id="tolerated",
        ),
        pytest.param(
            [
                node("a", labels={"zone": "a"}),
                node("b", cpu=64),
                *gang("g", 1, scheduling=PodConstraints(required=(ZONE_A,))),
            ],
            "a",
            id="a required zone",
        ),
        pytest.param(
            [
                *nodes("n", 3),
                *gang(
                    "g",
                    1,
                    scheduling=PodConstraints(
                        required=(SelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("n-2",)),)),)
                    ),
                ),
            ],
            "n-2",
            id="a node by its name",
        ),
    ],
)
def test_the_best_node_is_chosen(specs: list[Spec], where: str) -> None:
    assert list(bindings(Cluster.of(specs).cycle()).values()) == [where]


def test_pods_that_ask_for_nothing_are_taken_to_use_a_little_where_the_emptiest_node_is_looked_for() -> None:
    """kube-scheduler's scores count 100m and 200Mi for a container without requests; room for others it takes none."""
    silent = PodConstraints(assumed=(100, 200 * 1024**2))
    there = [pod(f"x-{index}", node="n-0", cpu=0, scheduling=silent) for index in range(3)]
    cluster = Cluster.of(nodes("n", 2, cpu=4, memory=4), there, gang("g", 1, 1, 1))
    assert bindings(cluster.cycle()) == {"g-w-0": "n-1"}
    cluster.delete("x-0", "x-1", "x-2")
    assert cluster.cache.nodes["n-0"].assumed == (0, 0)
    quiet = Cluster.of(nodes("n", 2), gang("g", 2, 0, scheduling=silent))
    assert sorted(bindings(quiet.cycle()).values()) == ["n-0", "n-1"]


def test_members_spread_over_equal_nodes() -> None:
    assert sorted(bindings(Cluster.of(nodes("n", 3), gang("g", 3)).cycle()).values()) == ["n-0", "n-1", "n-2"]


def test_a_label_that_a_pod_mentions_later_tells_nodes_apart_from_then_on() -> None:
    cluster = Cluster.of(node("a", labels={"zone": "x"}), node("b", labels={"zone": "a"}), gang("one", 1))
    cluster.settle(cluster.cycle())
    assert len(cluster.cache.index.makes) == 1
    cluster.add(gang("two", 1, scheduling=PodConstraints(node_selector=(("zone", "a"),))))
    assert bindings(cluster.cycle()) == {"two-w-0": "b"}
    assert len(cluster.cache.index.makes) == 2


def test_a_dominant_share_is_the_largest() -> None:
    whole = resources(10, 100, gpu=4)
    assert dominant_share(resources(1, 50, gpu=1), whole) == 0.5
    assert dominant_share(resources(1, gpu=3), whole) == 0.75
    assert dominant_share(resources(), Resources()) == 0


CHANGES = st.lists(
    st.tuples(st.sampled_from(("use", "free", "spec", "remove")), st.integers(0, 5), st.integers(0, 4)), max_size=30
)
SHAPES = (
    (resources(1), PodConstraints()),
    (resources(2, 1), PodConstraints(node_selector=(("zone", "a"),))),
    (resources(0), PodConstraints(tolerations=(Toleration("t", "Exists"),))),
)


@settings(max_examples=60)
@given(CHANGES)
def test_the_index_finds_what_a_look_at_every_node_would(changes: list[tuple[str, int, int]]) -> None:
    index = NodeIndex()
    book = ShapeBook(index, Neighbours({}, lambda task: None))
    framework = build_framework(DEFAULT)
    index.use(framework.judge)
    shapes = [book.take(replace_pods(asked), asked, where) for asked, where in SHAPES]
    known: dict[str, NodeInfo] = {}
    for verb, which, amount in changes:
        name = f"n{which}"
        if verb == "spec":
            made = known.setdefault(name, NodeInfo(name))
            made.spec = node(
                name,
                cpu=amount,
                memory=4,
                pods=3,
                labels={"zone": "ab"[which % 2]},
                taints=[Taint("t")] if which == 3 else [],
            )
            index.set_spec(made)
        elif name in known and verb == "remove":
            index.remove(known.pop(name))
        elif name in known:
            account = known[name].used
            (account.add if verb == "use" else account.sub)(resources(1, 1, pods=1))
            index.touch(known[name])
        for each in shapes:
            assert index.view(each).best() is by_looking_at_all(index, each, known)


def replace_pods(asked: Resources) -> Resources:
    counted = asked.clone()
    counted.scalars["pods"] = 1
    return counted


def by_looking_at_all(index: NodeIndex, wanted: Shape, known: dict[str, NodeInfo]) -> NodeInfo | None:
    judge = index.judge
    possible = [node for node in known.values() if judge.refusal(wanted, node) is None]
    scores = [sum(parts) for parts in zip(*[order(wanted, possible) for order in judge.make_orders], strict=True)]
    found: list[tuple[int, str]] = []
    for candidate, score in zip(possible, scores, strict=True):
        if fits(wanted, candidate.idle):
            found.append((-score - sum(order(wanted, candidate) for order in judge.node_orders), candidate.name))
    return known[min(found)[1]] if found else None


def test_replacing_a_node_by_a_larger_one_wakes_who_was_too_large() -> None:
    cluster = Cluster.of(node("n", cpu=1), gang("g", 1, 2))
    assert not cluster.cycle().bindings
    cluster.add(replace(node("n", cpu=2)))
    assert bindings(cluster.cycle()) == {"g-w-0": "n"}


def test_pods_that_are_never_looked_at_tell_no_nodes_apart() -> None:
    """A DaemonSet's pods name their node each; else every node would be judged and scored by itself."""
    cluster = Cluster.of([node(f"n-{index}", 4, labels={"rack": f"r{index}"}) for index in range(5)])
    for index in range(5):
        field = SelectorTerm(fields=(Requirement("metadata.name", Operator.IN, (f"n-{index}",)),))
        daemon = pod(f"daemon-{index}", node=f"n-{index}", ours=False, scheduling=PodConstraints(required=(field,)))
        cluster.add(daemon)
    cluster.add(gang("g", 2))
    cluster.run()
    assert len(cluster.cache.index.makes) == 1
    cluster.add(gang("picky", 1, scheduling=PodConstraints(node_selector=(("rack", "r3"),))))
    cluster.run()
    assert cluster.placed()["picky-w-0"] == "n-3"
    assert len(cluster.cache.index.makes) == 5


def test_nodes_that_fill_and_empty_again_leave_nothing_in_the_index() -> None:
    """n-2 goes between two buckets of which neither ever has it as its first node: nothing else cleans up there."""
    cluster = Cluster.of(nodes("n", 5), [pod(f"first-{end}", node=f"n-{end}", ours=False) for end in (0, 4)])
    for number in range(100):
        cluster.add(pod(f"p-{number}", node="n-2", ours=False))
        assert len(list(cluster.cache.index.filled_buckets())) == 2
        cluster.delete(f"p-{number}")
        assert len(list(cluster.cache.index.filled_buckets())) == 2
    kept = {bucket.first(): len(bucket._names) for bucket in cluster.cache.index.filled_buckets()}
    assert kept.keys() == {"n-0", "n-1"}
    assert max(kept.values()) <= 20
