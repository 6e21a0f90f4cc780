"""What users of Volcano suffered at admission: quota held by nobody, and jobs refused for what they don't ask for."""

from __future__ import annotations

import pytest

from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.reasons import Code
from muster.scheduler.specs import Phase, PriorityClassSpec, TaskStatus
from muster.testing import Cluster, Spec, configuration, gang, node, pod, pod_group, pods, queue, resources

DEFAULTS = ["overcommit", "drf", "predicates", "proportion"]
PROPORTION = configuration("enqueue, allocate, backfill", ["priority", "gang"], DEFAULTS)
CAPACITY = configuration("enqueue, allocate, backfill", ["priority", "gang"], ["overcommit", "predicates", "capacity"])
BOTH = pytest.mark.parametrize("conf", [PROPORTION, CAPACITY], ids=["proportion", "capacity"])
WHOLE = resources(8, 8)


@BOTH
@pytest.mark.parametrize(
    "left_over",
    [
        pytest.param([pod_group("old", 2, min_resources=WHOLE, phase=Phase.COMPLETED)], id="completed"),
        pytest.param([pod_group("old", 0, min_resources=WHOLE, phase=Phase.INQUEUE)], id="scaled to nothing"),
        pytest.param([pod_group("old", 0, phase=Phase.RUNNING, min_resources=resources())], id="emptied"),
        pytest.param(
            [
                pod_group("old", 2, min_resources=WHOLE, phase=Phase.RUNNING),
                *pods("old", 2, 4, 4, node="n", status=TaskStatus.SUCCEEDED),
            ],
            id="its pods are done",
        ),
        pytest.param(
            [
                pod_group("old", 2, min_resources=WHOLE, phase=Phase.RUNNING),
                *pods("old", 2, 4, 4, node="n", status=TaskStatus.FAILED),
            ],
            id="its pods have failed",
        ),
    ],
)
def test_who_has_nothing_that_runs_holds_nothing(conf: SchedulerConfiguration, left_over: list[Spec]) -> None:
    """volcano#2633, volcano#2143, volcano#4385, volcano#2208, volcano#2264, volcano#1907: an idle cluster is free."""
    cluster = Cluster.of(node("n", 8, 8), left_over, configuration=conf)
    cluster.cycle()
    cluster.add(gang("new", 2, 4, 4))
    assert len(cluster.cycle().bindings) == 2


@BOTH
@pytest.mark.parametrize("phase", [None, Phase.RUNNING, Phase.UNKNOWN])
def test_an_admitted_podgroup_whose_pods_never_come_holds_its_room_only_for_a_time(
    conf: SchedulerConfiguration, phase: Phase | None
) -> None:
    """volcano#2633, volcano#2143: leftovers of deleted workloads stay Inqueue for ever there."""
    cluster = Cluster.of(node("n", 8, 8), pod_group("ghost", 2, min_resources=WHOLE, phase=phase), configuration=conf)
    cluster.cycle()
    cluster.cycle()
    assert cluster.phase("ghost") is Phase.INQUEUE
    cluster.add(gang("real", 2, 4, 4))
    assert not cluster.cycle(10).bindings
    assert len(cluster.cycle(301).bindings) == 2


@BOTH
def test_admitted_jobs_of_low_priority_that_can_not_start_do_not_keep_a_high_one_out_for_ever(
    conf: SchedulerConfiguration,
) -> None:
    """volcano#3670."""
    stuck = [pod_group("low", 9, min_resources=WHOLE), *pods("low", 8, 1, 1)]
    cluster = Cluster.of(node("n", 8, 8), PriorityClassSpec("high", 100), stuck, configuration=conf)
    cluster.cycle()
    assert cluster.phase("low") is Phase.INQUEUE
    cluster.add(gang("high", 2, 4, 4, priority_class="high"))
    cluster.cycle(10)
    assert len(cluster.cycle(301).bindings) == 2


@BOTH
def test_a_job_is_admitted_where_the_queue_has_just_enough(conf: SchedulerConfiguration) -> None:
    """volcano#4235: what runs above its minimum is taken off, and what was promised and runs is counted once."""
    running = [
        pod_group("a", 1, min_resources=resources(1, 1), phase=Phase.RUNNING, queue="q"),
        *pods("a", 3, 1, 1, node="n"),
        pod_group("b", 2, min_resources=resources(2, 2), phase=Phase.INQUEUE, queue="q"),
        *pods("b", 2, 1, 1, node="n", status=TaskStatus.BOUND),
    ]
    cluster = Cluster.of(node("n", 16, 16), queue("q", capability=resources(6, 6)), running, configuration=conf)
    cluster.add(pod_group("new", 1, min_resources=resources(3, 3), queue="q"))
    cluster.add(pod_group("more", 1, min_resources=resources(1, 1), queue="q"))
    cluster.cycle()
    assert (cluster.phase("new"), cluster.phase("more")) == (Phase.INQUEUE, Phase.PENDING)


@BOTH
@pytest.mark.parametrize(
    ("used", "asked", "starts"),
    [
        pytest.param({"gpu": 2, "cpu": 1}, {"cpu": 1, "memory": 1}, True, id="GPUs are gone, CPU is asked for"),
        pytest.param({"memory": 8, "cpu": 1}, {"cpu": 1}, True, id="memory is gone, CPU is asked for"),
        pytest.param({"cpu": 8}, {"cpu": 0, "memory": 1}, True, id="CPU is gone, memory is asked for"),
        pytest.param({"gpu": 2, "cpu": 1}, {"cpu": 1, "gpu": 1}, False, id="GPUs are gone and asked for"),
    ],
)
def test_a_resource_that_is_used_up_keeps_out_only_who_asks_for_it(
    conf: SchedulerConfiguration, used: dict[str, int], asked: dict[str, int], *, starts: bool
) -> None:
    """volcano#1425, volcano#5199, volcano#5240, volcano#5001."""
    holder: list[Spec] = [pod_group("old", 1, phase=Phase.RUNNING, queue="q"), pod("old-0", "old", node="n", **used)]  # type: ignore[arg-type]
    limit = resources(8, 8, gpu=2)
    cluster = Cluster.of(
        node("n", 16, 16, gpu=4),
        queue("q", capability=limit, deserved=limit),
        holder,
        gang("new", 1, queue="q", **asked),  # type: ignore[arg-type]
        configuration=conf,
    )
    assert bool(cluster.cycle().bindings) is starts


@BOTH
def test_a_queue_that_does_not_speak_of_pods_is_not_bounded_by_them(conf: SchedulerConfiguration) -> None:
    """volcano#3426: a `pods` dimension that is 0 blocked the queue there."""
    limit = resources(8, 8)
    cluster = Cluster.of(
        node("n", 8, 8), queue("q", capability=limit, deserved=limit), gang("g", 3, queue="q"), configuration=conf
    )
    assert len(cluster.cycle().bindings) == 3


@BOTH
def test_a_queue_never_uses_more_than_its_cap(conf: SchedulerConfiguration) -> None:
    """volcano#1860: also not with gangs that say nothing of what they need at least."""
    groups = [[pod_group(f"g{i}", 2, queue="q"), *pods(f"g{i}", 2, 1)] for i in range(5)]
    cluster = Cluster.of(node("n", 99), queue("q", capability=resources(5)), *groups, configuration=conf)
    cluster.run()
    assert cluster.cache.queues["q"].allocated.milli_cpu == 4000


@BOTH
def test_a_cluster_of_nothing_admits_nobody_and_stops_nobody(conf: SchedulerConfiguration) -> None:
    """volcano#4261, volcano#3301: no node yet, or one with nothing, is no reason to panic."""
    cluster = Cluster.of(gang("g", 2), configuration=conf)
    assert not cluster.cycle().bindings
    cluster.add(node("empty", 0, 0, pods=0))
    assert not cluster.cycle().bindings
    job = cluster.cache.jobs["default/g"]
    assert job.reason is not None
    assert job.reason.code is not Code.WAITING_FOR_TURN
    cluster.add(node("n"))
    assert len(cluster.cycle().bindings) == 2


def test_more_is_taken_away_than_there_was_and_accounts_go_on() -> None:
    """volcano#3301: pods that others bound exceed the node, then the node shrinks."""
    cluster = Cluster.of(node("n", 4), pods("x", 6, 1, node="n", ours=False), gang("g", 1))
    assert not cluster.cycle().bindings
    cluster.add(node("n", 1))
    assert not cluster.cycle().bindings
    cluster.delete(*[f"x-w-{index}" for index in range(6)])
    assert len(cluster.cycle().bindings) == 1
