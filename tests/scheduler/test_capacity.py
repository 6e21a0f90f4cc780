"""The plugin `capacity`: caps, deserved amounts and guarantees, for single queues and down a tree."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muster.scheduler.plugins.capacity import Capacity
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.resources import Resources
from muster.scheduler.session import Session
from muster.scheduler.specs import Phase, QueueSpec, QueueState
from muster.scheduler.task import TaskInfo
from muster.testing import (
    Cluster,
    Spec,
    bindings,
    configuration,
    gang,
    node,
    nodes,
    pod,
    pod_group,
    pods,
    queue,
    resources,
)
from tests.scheduler.audit import audit

TREE: dict[str, object] = {"name": "capacity", "enableHierarchy": True}
FLAT = configuration("enqueue, allocate", ["gang"], ["predicates", "capacity"])
HIERARCHY = configuration("enqueue, allocate", ["gang"], ["predicates", TREE])


def below(parent: str, name: str, **options: object) -> QueueSpec:
    return queue(name, parent=parent, **options)  # type: ignore[arg-type]


def opened(cluster: Cluster) -> Session:
    """A session with the plugins' accounts as a cycle would find them."""
    cluster.cycle()
    memory = cluster.cache.memory
    return Session(cluster.cache, memory.framework, cluster.configuration, cluster.now)  # type: ignore[attr-defined]


def plugin(session: Session) -> Capacity:
    (found,) = [each for each in session.framework.plugins if isinstance(each, Capacity)]
    return found


def limit(session: Session, name: str) -> Resources:
    return plugin(session)._entitled[name].limit


# --- entitlements ---


@pytest.mark.parametrize(
    ("specs", "deserved", "most"),
    [
        pytest.param([queue("q", deserved=resources(3, 4))], resources(3, 4), resources(10, 20), id="as the spec says"),
        pytest.param([queue("q", deserved=resources(30))], resources(10), resources(10, 20), id="at most the cluster"),
        pytest.param(
            [queue("q", capability=resources(4), deserved=resources(6))], resources(4), resources(4, 20), id="its cap"
        ),
        pytest.param(
            [queue("q", deserved=resources(9)), queue("r", guarantee=resources(3))],
            resources(7),
            resources(7, 20),
            id="less what others are guaranteed",
        ),
        pytest.param([queue("q", guarantee=resources(3))], resources(3), resources(10, 20), id="its guarantee"),
        pytest.param([queue("q")], resources(), resources(10, 20), id="nothing"),
        pytest.param(
            [queue("q"), queue("r", guarantee=resources(99))], resources(), resources(0, 20), id="all is guaranteed"
        ),
        pytest.param([queue("q", deserved=resources(gpu=2))], resources(gpu=2), resources(10, 20), id="no such scalar"),
    ],
)
def test_a_flat_queue_is_entitled_to_its_spec_within_the_cluster(
    specs: list[Spec], deserved: Resources, most: Resources
) -> None:
    session = opened(Cluster.of(node("n", 10, 20), specs, configuration=FLAT))
    assert plugin(session)._entitled["q"].deserved == deserved
    assert limit(session, "q") == most


def test_down_a_tree_limits_are_inherited_and_siblings_keep_their_guarantees() -> None:
    specs = [
        queue("a", capability=resources(8)),
        below("a", "a1", guarantee=resources(2), deserved=resources(1)),
        below("a", "a2", capability=resources(7)),
        below("a", "a3", capability=resources(99, 1)),
        queue("b", deserved=resources(4)),
    ]
    session = opened(Cluster.of(node("n", 10, 20, gpu=1), specs, configuration=HIERARCHY))
    assert {name: limit(session, name).milli_cpu for name in ("a", "a1", "a2", "a3")} == {
        "a": 8000,
        "a1": 8000,
        "a2": 6000,
        "a3": 6000,
    }
    assert limit(session, "a3").memory == 1024**3
    assert limit(session, "a1").get("nvidia.com/gpu") > 10**6
    assert limit(session, "b").milli_cpu > 10**9
    deserved = {name: entitled.deserved for name, entitled in plugin(session)._entitled.items()}
    assert deserved["a1"] == resources(2)
    assert deserved["a"] == resources()
    assert deserved["root"] == resources(4)


def test_a_tree_may_promise_more_than_the_cluster_has_and_a_cap_of_the_root_binds_all() -> None:
    specs: list[Spec] = [QueueSpec("root", capability=resources(3)), queue("a", guarantee=resources(32)), queue("b")]
    cluster = Cluster.of(node("n", 10), specs, configuration=HIERARCHY)
    cluster.add(gang("x", 2, queue="a"), gang("y", 1, queue="b"))
    outcome = cluster.cycle()
    assert set(bindings(outcome)) == {"x-w-0", "x-w-1"}
    reason = outcome.pod_groups["default/y"].reason
    assert reason is not None
    assert (reason.code, reason.queue, reason.limit) == (Code.QUEUE_QUOTA, "b", 0)


# --- quota ---


def test_a_queue_may_use_more_than_it_deserves_up_to_its_cap() -> None:
    capped = queue("q", capability=resources(3), deserved=resources(1))
    cluster = Cluster.of(node("n", 10), capped, pod_group("g", 1, queue="q"), pods("g", 5), configuration=FLAT)
    outcome = cluster.cycle()
    assert len(outcome.bindings) == 3
    reason = outcome.pod_groups["default/g"].reason
    assert reason is not None
    assert (reason.code, reason.queue, reason.resource) == (Code.QUEUE_QUOTA, "q", "cpu")
    assert (reason.requested, reason.used, reason.free, reason.limit) == (1000, 3000, 0, 3000)
    assert (outcome.queues["q"].share, outcome.queues["q"].overused) == (3.0, True)


def test_only_what_is_asked_for_is_compared() -> None:
    full: list[Spec] = [pod_group("old", 1, queue="q", phase=Phase.RUNNING), pod("old-0", "old", 1, 3, node="n")]
    cluster = Cluster.of(node("n", 10, 10), queue("q", capability=resources(2, 2)), full, configuration=FLAT)
    cluster.add(gang("g", 1, cpu=1, queue="q"))
    assert set(bindings(cluster.cycle())) == {"g-w-0"}


@pytest.mark.parametrize(("tree", "bound"), [(False, 4), (True, 3)])
def test_an_ancestors_cap_binds_only_in_a_hierarchy(tree: bool, bound: int) -> None:
    specs = [queue("p", capability=resources(3)), below("p", "q", capability=resources(9))]
    cluster = Cluster.of(node("n", 10), specs, configuration=HIERARCHY if tree else FLAT)
    cluster.add(pod_group("g", 1, queue="q"), pods("g", 4))
    outcome = cluster.cycle()
    assert len(outcome.bindings) == bound
    if tree:
        reason = outcome.pod_groups["default/g"].reason
        assert reason is not None
        assert (reason.code, reason.queue, reason.limit) == (Code.QUEUE_QUOTA, "p", 3000)


def test_the_cap_of_an_ancestor_holds_whatever_flags_are_set_and_pods_that_leave_still_count() -> None:
    off = {**TREE, "enabledAllocatable": False}
    specs = [queue("p", capability=resources(3)), below("p", "q"), below("p", "r")]
    cluster = Cluster.of(node("n", 10), specs, configuration=configuration("allocate", [off]))
    cluster.add(gang("x", 2, queue="q"), gang("y", 2, queue="r"))
    assert set(bindings(cluster.cycle())) == {"x-w-0", "x-w-1"}


def test_what_a_cousin_frees_wakes_a_gang_that_an_ancestors_cap_kept_out() -> None:
    specs = [queue("p", capability=resources(3)), below("p", "m"), below("m", "q"), below("p", "r")]
    cluster = Cluster.of(node("n", 10), specs, gang("x", 2, queue="q"), gang("y", 2, queue="r"))
    cluster.configuration = HIERARCHY
    cluster.settle(cluster.cycle())
    assert not cluster.cycle().bindings
    cluster.delete("x-w-0", "x-w-1")
    assert set(bindings(cluster.cycle())) == {"y-w-0", "y-w-1"}
    audit(cluster.cache)


@pytest.mark.parametrize(
    ("caps", "culprit"),
    [((2, 9), "p"), ((9, 2), "q"), ((2, 2), "q")],
)
def test_what_is_larger_than_a_cap_on_the_way_up_will_never_run_and_the_queue_is_named(
    caps: tuple[int, int], culprit: str
) -> None:
    specs = [queue("p", capability=resources(caps[0])), below("p", "q", capability=resources(caps[1]))]
    cluster = Cluster.of(node("n", 10), specs, gang("g", 3, queue="q"), configuration=HIERARCHY)
    reason = cluster.cycle().pod_groups["default/g"].reason
    assert reason is not None
    assert (reason.code, reason.queue, reason.requested, reason.limit) == (
        Code.LARGER_THAN_QUEUE,
        culprit,
        3000,
        2000,
    )


# --- admission ---


def phases(cluster: Cluster) -> dict[str, Phase]:
    cluster.cycle()
    return {key.partition("/")[2]: job.phase for key, job in cluster.cache.jobs.items()}


def group(name: str, cpu: float | None, queue: str = "q", phase: Phase | None = None) -> Spec:
    return pod_group(name, 1, min_resources=None if cpu is None else resources(cpu), queue=queue, phase=phase)


def test_admitted_gangs_reserve_in_their_queue_and_in_all_above() -> None:
    specs = [queue("p", capability=resources(4)), below("p", "q"), below("p", "r"), queue("x")]
    cluster = Cluster.of(nodes("n", 9), specs, configuration=HIERARCHY)
    cluster.add(group("one", 3), group("two", 2, "r"), group("three", 1, "r"), group("four", 9, "x"))
    assert phases(cluster) == {
        "one": Phase.INQUEUE,
        "two": Phase.PENDING,
        "three": Phase.INQUEUE,
        "four": Phase.INQUEUE,
    }


@pytest.mark.parametrize(
    ("specs", "admitted"),
    [
        pytest.param([group("g", 4)], True, id="all of the limit"),
        pytest.param([group("g", 5)], False, id="more than the limit"),
        pytest.param([group("g", None)], True, id="no minResources"),
        pytest.param([group("a", 3, phase=Phase.INQUEUE), group("g", 2)], False, id="another is admitted"),
        pytest.param(
            [pod_group("a", 1, min_resources=resources(1), queue="q"), pods("a", 3, node="n"), group("g", 3)],
            True,
            id="what others use above their minimum can be taken back",
        ),
        pytest.param(
            [pod_group("a", 3, min_resources=resources(3), queue="q"), pods("a", 3, node="n"), group("g", 3)],
            False,
            id="what others need is not",
        ),
    ],
)
def test_admission_counts_what_is_used_and_promised(specs: list[Spec], admitted: bool) -> None:
    for choice in (FLAT, HIERARCHY):
        cluster = Cluster.of(node("n", 10), queue("q", capability=resources(4)), specs, configuration=choice)
        assert (phases(cluster)["g"] is Phase.INQUEUE) is admitted


def test_a_closed_queue_admits_nothing() -> None:
    cluster = Cluster.of(nodes("n", 1), queue("q", state=QueueState.CLOSED), group("g", 1), configuration=FLAT)
    assert phases(cluster) == {"g": Phase.PENDING}


# --- order ---


def running(queue_name: str, cpu: int) -> list[Spec]:
    """So much of the queue is in use."""
    name = f"used-{queue_name}"
    return [pod_group(name, 1, queue=queue_name, phase=Phase.RUNNING), pod(f"{name}-0", name, cpu, node="n")]


@pytest.mark.parametrize(
    ("specs", "winner"),
    [
        pytest.param(
            [queue("a", deserved=resources(4)), queue("b", deserved=resources(8)), *running("a", 2), *running("b", 2)],
            "b",
            id="the smaller share",
        ),
        pytest.param([queue("a"), queue("b", deserved=resources(9)), *running("b", 8)], "b", id="nothing deserved"),
        pytest.param([queue("a"), queue("b", deserved=resources(2)), *running("b", 2)], "b", id="equal shares"),
        pytest.param([queue("a"), queue("b", deserved=resources(2)), *running("b", 3)], "a", id="above deserved"),
        pytest.param([queue("a", deserved=resources(9)), queue("b", priority=1)], "b", id="priority before share"),
        pytest.param([queue("a"), queue("b")], "a", id="age"),
    ],
)
def test_the_queue_that_has_the_smallest_part_of_what_it_deserves_goes_first(specs: list[Spec], winner: str) -> None:
    used = sum(each.request.milli_cpu for each in specs if hasattr(each, "request")) // 1000
    cluster = Cluster.of(node("n", used + 1), specs, gang("x-a", 1, queue="a"), gang("x-b", 1, queue="b"))
    cluster.configuration = FLAT
    assert list(bindings(cluster.cycle())) == [f"x-{winner}-w-0"]


def test_leaves_are_ordered_by_the_branches_on_which_they_part() -> None:
    specs = [
        queue("p", deserved=resources(8)),
        below("p", "p1", deserved=resources(2)),
        below("p", "p2", deserved=resources(6)),
        queue("r", deserved=resources(4)),
        below("r", "r1", deserved=resources(4)),
        *running("p1", 1),
        *running("r1", 1),
    ]
    cluster = Cluster.of(node("n", 3), specs, gang("x", 1, queue="r1"), gang("y", 1, queue="p1"))
    cluster.configuration = HIERARCHY
    # p1 alone uses half of what it deserves, r1 a quarter; but p uses an eighth and r a quarter.
    assert list(bindings(cluster.cycle())) == ["y-w-0"]


# --- taking back ---


def tasks(session: Session, *names: str) -> list[TaskInfo]:
    return [session.cache.tasks[f"uid-{name}"] for name in names]


def objection(session: Session, queue_name: str, *names: str) -> Reason | None:
    return session.framework.preemptive(session, session.cache.queues[queue_name], tasks(session, *names))


def waiting(queue_name: str, cpu: float = 1, memory: float = 0) -> list[Spec]:
    return [
        pod_group("want", 1, queue=queue_name, phase=Phase.INQUEUE),
        pod("want-0", "want", cpu, memory, gated=True),
    ]


@pytest.mark.parametrize(
    ("claimant", "ask", "allowed"),
    [
        pytest.param(queue("q", deserved=resources(2)), waiting("q", 2), True, id="within deserved"),
        pytest.param(queue("q", deserved=resources(2)), waiting("q", 3), False, id="above deserved"),
        pytest.param(queue("q", deserved=resources(2, 1)), waiting("q", 3, 1), True, id="one dimension is enough"),
        pytest.param(
            queue("q", deserved=resources(2)), waiting("q", 3, 1), False, id="undeserved memory does not help"
        ),
        pytest.param(queue("q"), waiting("q", 1), False, id="nothing deserved"),
        pytest.param(
            queue("q", capability=resources(1), deserved=resources(1, 4)), waiting("q", 2, 4), False, id="above the cap"
        ),
        pytest.param(
            queue("q", deserved=resources(2), state=QueueState.CLOSING), waiting("q", 1), False, id="not open"
        ),
    ],
)
def test_a_queue_takes_back_within_what_it_deserves(claimant: Spec, ask: list[Spec], allowed: bool) -> None:
    session = opened(Cluster.of(node("n", 10, 20), claimant, ask, configuration=FLAT))
    assert (objection(session, "q", "want-0") is None) is allowed


@pytest.mark.parametrize(("level", "allowed"), [(0, False), (1, True), (2, True)])
def test_an_ancestor_within_the_level_may_have_the_claim(level: int, allowed: bool) -> None:
    tree = {**TREE, "arguments": {"ancestorReclaimLevel": level}}
    specs = [queue("p", deserved=resources(4)), below("p", "q")]
    cluster = Cluster.of(node("n", 10), specs, waiting("q", 2), configuration=configuration("allocate", [tree]))
    assert (objection(opened(cluster), "q", "want-0") is None) is allowed


def holders(queue_name: str, count: int, cpu: float = 1, memory: float = 0, **scalars: int) -> list[Spec]:
    return [
        pod_group(queue_name, 1, queue=queue_name, phase=Phase.RUNNING),
        *pods(queue_name, count, cpu, memory, node="n", **scalars),
    ]


def victims(cluster: Cluster, names: Sequence[str]) -> list[str]:
    session = opened(cluster)
    (reclaimer,) = tasks(session, "want-0")
    chosen = session.framework.reclaimable(session, reclaimer, tasks(session, *names))
    return [task.spec.name for task in chosen]


@pytest.mark.parametrize(
    ("specs", "count"),
    [
        pytest.param([queue("v", deserved=resources(1)), *holders("v", 3)], 2, id="down to what it deserves"),
        pytest.param([queue("v", deserved=resources(3)), *holders("v", 3)], 0, id="within what it deserves"),
        pytest.param([queue("v", deserved=resources(2.5)), *holders("v", 3)], 1, id="the last one may fall below"),
        pytest.param([queue("v"), *holders("v", 3)], 3, id="deserves nothing"),
        pytest.param([queue("v", deserved=resources(0, 9)), *holders("v", 3)], 3, id="nothing in common with deserved"),
        pytest.param([queue("v", guarantee=resources(2)), *holders("v", 3)], 1, id="the guarantee stays"),
        pytest.param(
            [queue("v", deserved=resources(1, gpu=3)), *holders("v", 3, gpu=1)], 0, id="scalars go before cpu"
        ),
        pytest.param([queue("v", deserved=resources(9, gpu=1)), *holders("v", 3, gpu=1)], 2, id="above its scalars"),
        pytest.param([queue("v"), *holders("v", 3, 0, 1)], 0, id="holds nothing that is wanted"),
    ],
)
def test_who_gives_back(specs: list[Spec], count: int) -> None:
    cluster = Cluster.of(node("n", 10, 20, gpu=8), queue("q", deserved=resources(9)), specs, waiting("q", 1))
    cluster.configuration = configuration("allocate", ["capacity"])
    names = [f"v-w-{index}" for index in range(3)]
    assert victims(cluster, names) == names[:count]


@pytest.mark.parametrize(
    ("level", "specs", "count"),
    [
        pytest.param(0, [queue("p", deserved=resources(9)), below("p", "v")], 2, id="ancestors are not asked"),
        pytest.param(1, [queue("p", deserved=resources(9)), below("p", "v")], 0, id="the parent is within its own"),
        pytest.param(1, [queue("p", deserved=resources(1)), below("p", "v")], 1, id="until the parent is"),
        pytest.param(1, [queue("p"), below("p", "v")], 2, id="a parent that deserves nothing agrees"),
        pytest.param(
            1,
            [queue("g", deserved=resources(9)), below("g", "p"), below("p", "v")],
            2,
            id="the grandparent is beyond the level",
        ),
        pytest.param(
            2,
            [queue("g", deserved=resources(9)), below("g", "p"), below("p", "v")],
            0,
            id="the grandparent is within the level",
        ),
    ],
)
def test_ancestors_up_to_the_level_have_to_agree(level: int, specs: list[Spec], count: int) -> None:
    tree = {**TREE, "arguments": {"ancestorReclaimLevel": level}}
    cluster = Cluster.of(node("n", 10), queue("q", deserved=resources(9)), specs, holders("v", 2), waiting("q", 1))
    cluster.configuration = configuration("allocate", [tree])
    names = ["v-w-0", "v-w-1"]
    assert victims(cluster, names) == names[:count]


@pytest.mark.parametrize(
    ("level", "claim", "count"),
    [(0, None, 1), (1, None, 0), (1, resources(2), 1)],
)
def test_kin_that_deserve_nothing_do_not_take_from_each_other(level: int, claim: Resources | None, count: int) -> None:
    tree = {**TREE, "arguments": {"ancestorReclaimLevel": level}}
    specs = [queue("p", deserved=resources(4)), below("p", "q", deserved=claim), below("p", "v")]
    cluster = Cluster.of(node("n", 10), specs, holders("v", 1), waiting("q", 1))
    cluster.configuration = configuration("allocate", [tree])
    assert len(victims(cluster, ["v-w-0"])) == count


def test_the_queue_nearest_in_the_tree_loses_its_pods_first() -> None:
    specs = [queue("p"), below("p", "q"), below("p", "near"), queue("far")]
    session = opened(Cluster.of(node("n"), specs, configuration=HIERARCHY))
    order = session.framework.compare_victim_queues
    queues = session.cache.queues
    assert order(session, queues["near"], queues["far"], queues["q"]) < 0
    assert order(session, queues["far"], queues["near"], queues["q"]) > 0
    assert order(session, queues["far"], queues["default"], queues["q"]) == 0


def test_beside_proportion_each_keeps_its_own_idea_of_what_a_queue_deserves() -> None:
    both = configuration("allocate", ["proportion"], ["capacity"])
    specs = [queue("q", deserved=resources(2)), pod_group("g", 1, queue="q", phase=Phase.INQUEUE), *pods("g", 6)]
    cluster = Cluster.of(node("n", 4), specs, configuration=both)
    assert len(cluster.cycle().bindings) == 4
    assert cluster.cache.queues["q"].deserved == resources(4)
    assert plugin(opened(cluster))._entitled["q"].deserved == resources(2)


def test_entitlements_are_not_worked_out_again_while_only_pods_change() -> None:
    cluster = Cluster.of(node("n", 10), queue("q", deserved=resources(2)), gang("g", 1, queue="q"), configuration=FLAT)
    session = opened(cluster)
    before = plugin(session)._entitled
    cluster.add(gang("h", 1, queue="q"))
    cluster.cycle()
    assert plugin(session)._entitled is before
    cluster.add(node("m", 10))
    cluster.cycle()
    assert plugin(session)._entitled is not before
