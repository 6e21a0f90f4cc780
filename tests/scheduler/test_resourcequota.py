from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.scheduler.reasons import Code
from muster.scheduler.resources import Resources
from muster.scheduler.specs import Phase, PodGroupSpec, ResourceQuotaSpec
from muster.testing import Cluster, configuration, nodes, pod, pod_group, pods, queue, resources

CONF = configuration("enqueue, allocate", ["gang", "resourcequota"], ["predicates"])
GIB = 1024**3


def quota(hard: dict[str, int], used: dict[str, int] | None = None, name: str = "q") -> ResourceQuotaSpec:
    return ResourceQuotaSpec("default", name, hard, used or {})


def group(name: str, least: Resources | None, namespace: str = "default", phase: Phase | None = None) -> PodGroupSpec:
    return replace(pod_group(name, 1, min_resources=least, phase=phase), namespace=namespace)


@pytest.mark.parametrize(
    ("hard", "used", "least", "phase"),
    [
        pytest.param({"cpu": 4000}, {"cpu": 1000}, resources(3), Phase.INQUEUE, id="just fits"),
        pytest.param({"cpu": 4000}, {"cpu": 2000}, resources(3), Phase.PENDING, id="does not"),
        pytest.param({"requests.cpu": 4000}, {"requests.cpu": 2000}, resources(3), Phase.PENDING, id="requests.cpu"),
        pytest.param({"memory": 2 * GIB}, {}, resources(1, 3), Phase.PENDING, id="memory"),
        pytest.param({"memory": 2 * GIB}, {}, resources(9), Phase.INQUEUE, id="only what is asked for"),
        pytest.param({"cpu": 0}, {}, resources(1), Phase.PENDING, id="a limit of 0"),
        pytest.param({"cpu": 0}, {}, None, Phase.INQUEUE, id="no minResources"),
        pytest.param(
            {"requests.nvidia.com/gpu": 2000}, {}, resources(1, 0, gpu=3), Phase.PENDING, id="an extended resource"
        ),
        pytest.param({"count/pods": 2}, {"count/pods": 1}, resources(1, 0, 2), Phase.PENDING, id="the number of pods"),
        pytest.param({"limits.cpu": 1000}, {}, resources(3), Phase.INQUEUE, id="limits are not asked for"),
    ],
)
def test_a_gang_is_admitted_if_the_quota_of_its_namespace_has_room(
    hard: dict[str, int], used: dict[str, int], least: Resources | None, phase: Phase
) -> None:
    cluster = Cluster.of(nodes("n", 1), quota(hard, used), group("g", least), configuration=CONF)
    cluster.cycle()
    assert cluster.phase("g") is phase


def test_every_quota_must_have_room_and_the_one_that_has_none_is_named_with_its_numbers() -> None:
    cluster = Cluster.of(
        nodes("n", 1),
        quota({"cpu": 9000}, name="wide"),
        quota({"cpu": 2000}, {"cpu": 1000}, name="narrow"),
        [group("g", resources(3)), pod("g-w-0", "g", cpu=3)],
        configuration=CONF,
    )
    cluster.cycle()
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert (reason.code, reason.detail, reason.resource) == (Code.NAMESPACE_QUOTA, "default/narrow", "cpu")
    assert (reason.requested, reason.used, reason.free, reason.limit) == (3000, 1000, 1000, 2000)
    assert not reason.more_nodes_help


def test_gangs_admitted_together_do_not_share_the_same_room() -> None:
    cluster = Cluster.of(
        nodes("n", 1), quota({"cpu": 4000}), group("a", resources(3)), group("b", resources(3)), configuration=CONF
    )
    cluster.cycle()
    assert [cluster.phase(name) for name in ("a", "b")] == [Phase.INQUEUE, Phase.PENDING]


def test_an_admitted_gang_keeps_its_room_until_its_pods_are_made() -> None:
    cluster = Cluster.of(
        nodes("n", 1), quota({"cpu": 4000}), group("a", resources(3), phase=Phase.INQUEUE), configuration=CONF
    )
    cluster.cycle()
    cluster.add(group("b", resources(2)))
    cluster.cycle()
    assert cluster.phase("b") is Phase.PENDING


ENDS: dict[str, Callable[[Cluster], object]] = {
    "deleted": lambda cluster: cluster.cache.remove_pod_group("default/a"),
    "smaller now": lambda cluster: cluster.add(in_queue("a", "q1", 2)),
    "given back in time": lambda cluster: cluster.cycle(301),
    "larger than every node": lambda cluster: cluster.add(pod("a-w-0", "a", cpu=500)),
}


def in_queue(name: str, which: str, cpu: float) -> PodGroupSpec:
    return pod_group(name, 1, min_resources=resources(cpu), queue=which)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("others", ["q1", "q2"])
def test_when_what_was_promised_to_one_gang_is_free_a_gang_of_any_queue_gets_it(others: str, end: str) -> None:
    cluster = Cluster.of(
        nodes("n", 4), queue("q1"), queue("q2"), quota({"cpu": 4000}), in_queue("a", "q1", 4), configuration=CONF
    )
    cluster.cycle()
    cluster.add(in_queue("b", others, 2))
    cluster.cycle()
    assert [cluster.phase(name) for name in "ab"] == [Phase.INQUEUE, Phase.PENDING]
    ENDS[end](cluster)
    while cluster.cycle().wake_at == cluster.now:
        pass
    assert cluster.phase("b") is Phase.INQUEUE


def test_pods_that_the_quota_counts_already_are_not_asked_for_again() -> None:
    cluster = Cluster.of(
        nodes("n", 1),
        quota({"cpu": 4000}, {"cpu": 4000}),
        [group("g", resources(3)), *pods("g", 3, cpu=1)],
        pod("other", cpu=1, node="n-0", ours=False),
        configuration=CONF,
    )
    cluster.cycle()
    assert cluster.phase("g") is Phase.INQUEUE


def test_pods_that_the_quota_does_not_count_yet_are_asked_for() -> None:
    cluster = Cluster.of(
        nodes("n", 1),
        quota({"cpu": 4000}, {"cpu": 2000}),
        [group("g", resources(3)), *pods("g", 3, cpu=1)],
        [pod(f"other-{index}", cpu=1, node="n-0", ours=False) for index in range(2)],
        configuration=CONF,
    )
    cluster.cycle()
    assert cluster.phase("g") is Phase.PENDING


def test_a_gang_that_waits_for_quota_is_admitted_when_there_is_more() -> None:
    cluster = Cluster.of(nodes("n", 1), quota({"cpu": 1000}), group("g", resources(3)), configuration=CONF)
    cluster.cycle()
    cluster.add(quota({"cpu": 3000}))
    cluster.cycle()
    assert cluster.phase("g") is Phase.INQUEUE


def test_a_gang_that_waits_for_quota_is_admitted_when_the_quota_is_gone() -> None:
    cluster = Cluster.of(nodes("n", 1), quota({"cpu": 1000}), group("g", resources(3)), configuration=CONF)
    cluster.cycle()
    cluster.cache.remove_resource_quota("default/q")
    cluster.cycle()
    assert cluster.phase("g") is Phase.INQUEUE


def test_the_quota_of_one_namespace_holds_up_nobody_in_another() -> None:
    cluster = Cluster.of(
        nodes("n", 1),
        quota({"cpu": 1000}),
        group("a", resources(3)),
        group("b", resources(3), namespace="other"),
        configuration=CONF,
    )
    cluster.cycle()
    assert cluster.cache.jobs["other/b"].phase is Phase.INQUEUE
    assert cluster.phase("a") is Phase.PENDING


def test_parked_gangs_of_two_namespaces_are_woken_each_by_its_own_quota() -> None:
    other = ResourceQuotaSpec("other", "q", {"cpu": 1000})
    cluster = Cluster.of(
        nodes("n", 1),
        quota({"cpu": 1000}),
        other,
        group("a", resources(3)),
        group("b", resources(3), namespace="other"),
        configuration=CONF,
    )
    cluster.cycle()
    cluster.add(replace(other, hard={"cpu": 3000}))
    cluster.cycle()
    assert cluster.cache.jobs["other/b"].phase is Phase.INQUEUE
    assert cluster.phase("a") is Phase.PENDING
