"""Hierarchical drf: queues are ordered by what their branches of the tree use."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.plugins.hdrf import Fill, ShareTree, is_saturated
from muster.scheduler.resources import Resources
from muster.scheduler.session import Session
from muster.scheduler.specs import Phase, QueueSpec
from muster.testing import Cluster, Spec, configuration, node, pod, pod_group, pods, queue, resources

HDRF = configuration("allocate", [{"name": "drf", "enableHierarchy": True}])


def at(path: str, weights: str = "", name: str = "") -> QueueSpec:
    steps = tuple(float(each) for each in weights.split("/")) if weights else ()
    named = queue(name or path.replace("/", "-"))
    return replace(named, hierarchy=tuple(path.split("/")), hierarchy_weights=steps)


def job(name: str, queue_name: str, count: int, cpu: float, memory: float) -> list[Spec]:
    return [
        pod_group(name, 0, queue=queue_name, phase=Phase.INQUEUE),
        *[pod(f"{name}-p{index}", name, cpu, memory) for index in range(count)],
    ]


def shared_out(cluster: Cluster) -> Counter[str]:
    """How many pods each job got."""
    return Counter(binding.job.partition("/")[2] for binding in cluster.cycle().bindings)


def test_an_inner_node_counts_its_children_scaled_to_the_poorest() -> None:
    """dev and prod want different things: together they are no richer than either of them."""
    cluster = Cluster.of(
        node("n", 10, 10, pods=1000),
        [at("root/sci", "100/50"), at("root/eng/dev", "100/50/50"), at("root/eng/prod", "100/50/50")],
        job("sci", "root-sci", 10, 1, 1),
        job("dev", "root-eng-dev", 10, 1, 0),
        job("prod", "root-eng-prod", 10, 0, 1),
        configuration=HDRF,
    )
    assert shared_out(cluster) == {"sci": 5, "dev": 5, "prod": 5}


def test_a_job_that_can_get_no_more_does_not_hold_its_siblings_back() -> None:
    queues = [at(f"root/{name}", "100/25") for name in ("pg1", "pg2", "pg4")]
    queues += [at("root/pg3/pg31", "100/25/50"), at("root/pg3/pg32", "100/25/50")]
    cluster = Cluster.of(
        node("n", 30, 30, pods=10_000),
        queues,
        job("pg1", "root-pg1", 30, 1, 0),
        job("pg2", "root-pg2", 30, 1, 0),
        job("pg31", "root-pg3-pg31", 30, 1, 0),
        job("pg32", "root-pg3-pg32", 30, 0, 1),
        job("pg4", "root-pg4", 30, 0, 1),
        configuration=HDRF,
    )
    assert shared_out(cluster) == {"pg1": 10, "pg2": 10, "pg31": 10, "pg32": 15, "pg4": 15}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param(at("root/a", "1/3", "l"), at("root/b", "1/1", "r"), {"l": 6, "r": 2}, id="weights"),
        pytest.param(at("root/a", "1/0", "l"), at("root/b", "", "r"), {"l": 4, "r": 4}, id="below 1 or none is 1"),
        pytest.param(at("root/a/x", "1/3/1", "l"), at("root/b", "1/1", "r"), {"l": 6, "r": 2}, id="of the upper step"),
    ],
)
def test_branches_share_by_weight(left: QueueSpec, right: QueueSpec, expected: dict[str, int]) -> None:
    jobs = [*job("l", "l", 9, 1, 0), *job("r", "r", 9, 1, 0)]
    assert shared_out(Cluster.of(node("n", 8), [left, right], jobs, configuration=HDRF)) == expected


def test_queues_without_a_path_are_no_branches_and_age_decides() -> None:
    cluster = Cluster.of(node("n", 1), queue("b"), queue("a"), job("x", "a", 1, 1, 0), job("y", "b", 1, 1, 0))
    cluster.configuration = HDRF
    assert shared_out(cluster) == {"y": 1}


@pytest.mark.parametrize(
    ("held", "asked", "demanding", "saturated"),
    [
        (resources(1), resources(2), {"cpu", "memory"}, False),
        (resources(2), resources(2), {"cpu", "memory"}, True),
        (resources(1), resources(2), {"memory"}, True),
        (resources(1), resources(2), {"cpu"}, False),
        (resources(), resources(), set(), False),
        (resources(gpu=1), resources(gpu=1), {"cpu", "memory"}, True),
        (resources(), resources(1, gpu=1), {"cpu", "memory"}, False),
        (resources(1, 2), resources(9, 2), {"cpu", "memory"}, True),
    ],
)
def test_saturated_is_who_has_all_or_asks_for_what_is_used_up(
    held: Resources, asked: Resources, demanding: set[str], saturated: bool
) -> None:
    assert is_saturated(held, asked, frozenset(demanding)) is saturated


def session_of(cluster: Cluster) -> Session:
    cluster.cycle()
    memory = cluster.cache.memory
    return Session(cluster.cache, memory.framework, cluster.configuration, cluster.now)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("theirs", "victims"), [(3, 3), (2, 0), (1, 0)])
def test_a_branch_gives_back_while_it_would_still_be_the_richer(theirs: int, victims: int) -> None:
    """The reclaimer has nothing and wants one: who has three is still richer with two, who has two is not with one."""
    cluster = Cluster.of(
        node("n", 4),
        [at("root/a"), at("root/b")],
        [pod_group("rich", 0, queue="root-b", phase=Phase.RUNNING), *pods("rich", theirs, node="n")],
        [*pods("rich", 1, cpu=1, first=9, gated=True)],
        [pod_group("poor", 0, queue="root-a", phase=Phase.INQUEUE), *pods("poor", 2, gated=True)],
        configuration=HDRF,
    )
    session = session_of(cluster)
    tasks = session.cache.tasks
    candidates = [tasks[f"uid-rich-w-{index}"] for index in range(theirs)]
    assert len(session.framework.reclaimable(session, tasks["uid-poor-w-0"], candidates)) == victims


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["root/a", "root/a/x", "root/b", ""]), st.integers(0, 4)), min_size=2, max_size=5
    ),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=12),
)
def test_a_tree_that_is_kept_says_the_same_as_a_new_one(
    queues: list[tuple[str, int]], moves: list[tuple[int, int]]
) -> None:
    cluster = Cluster.of(node("n", 6, 6), configuration=HDRF)
    for index, (path, count) in enumerate(queues):
        cluster.add(at(path, "1/2/3", f"q{index}") if path else queue(f"q{index}"))
        cluster.add(pod_group(f"g{index}", 0, queue=f"q{index}"), pods(f"g{index}", count, gated=True))
    cluster.cycle()
    kept = ShareTree(cluster.cache)
    infos = [cluster.cache.queues[f"q{index}"] for index in range(len(queues))]
    for number, pick in moves:
        uid = f"uid-g{number % len(queues)}-w-{pick}"
        if uid in cluster.cache.tasks:
            held = cluster.cache.tasks[uid].node
            cluster.change_pod(uid.removeprefix("uid-"), node=None if held else "n")
        fresh = ShareTree(cluster.cache)
        for left in infos:
            for right in infos:
                assert kept.compare(left, right) == fresh.compare(left, right)


def two_branches() -> Cluster:
    """The queues a and b, each a branch; b uses a sixth of the cluster."""
    cluster = Cluster.of(node("n", 6, 6), at("root/a", name="a"), at("root/b", name="b"), configuration=HDRF)
    cluster.add(pod_group("theirs", 0, queue="b"), pod("theirs", "theirs", 1, node="n"))
    return cluster


def test_a_job_that_is_made_again_is_not_taken_for_the_old_one() -> None:
    cluster = two_branches()
    cluster.add(pod_group("mine", 0, queue="a"), pod("mine", "mine", 1, gated=True))
    cluster.cycle()
    kept = ShareTree(cluster.cache)
    a, b = cluster.cache.queues["a"], cluster.cache.queues["b"]
    assert kept.compare(a, b) < 0
    cluster.cache.remove_pod_group("default/mine")
    cluster.delete("mine")
    cluster.add(pod_group("mine", 0, queue="a"), pod("mine", "mine", 3, node="n"))
    cluster.cache.settle_tree()
    assert kept.compare(a, b) == ShareTree(cluster.cache).compare(a, b) > 0


def test_jobs_that_are_gone_leave_nothing_in_a_tree_that_is_kept() -> None:
    cluster = two_branches()
    cluster.cycle()
    kept = ShareTree(cluster.cache)
    a, b = cluster.cache.queues["a"], cluster.cache.queues["b"]
    for index in range(50):
        cluster.add(pod_group(f"g{index}", 0, queue="a"), pod(f"g{index}", f"g{index}", 2, node="n"))
        assert kept.compare(a, b) > 0
        cluster.cache.remove_pod_group(f"default/g{index}")
        cluster.delete(f"g{index}")
        assert kept.compare(a, b) < 0
    gc.collect()
    fills = [each for each in gc.get_referrers(Fill) if isinstance(each, Fill)]
    assert len(fills) < 20
