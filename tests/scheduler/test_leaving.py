"""P7: no room is kept for ever next to a pod that does not leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.specs import PriorityClassSpec, TaskStatus
from muster.testing import (
    Cluster,
    Spec,
    bindings,
    configuration,
    evictions,
    gang,
    node,
    nodes,
    pod,
    pod_group,
    queue,
    resources,
)
from muster.testing_company import constraints, far, near, ports, spread, zone_nodes
from muster.testing_devices import claim, gpus, tell, user
from tests.scheduler.audit import audit

HOUR = 3600.0
PREEMPTING = configuration("enqueue, allocate, preempt, backfill", ["priority", "conformance"], ["predicates"])


def stuck(*specs: Spec | list[Spec]) -> Cluster:
    """`big` has a place on n-1, and waits for a pod to leave n-0, where somebody has forgotten a finalizer."""
    cluster = Cluster.of(
        nodes("n", 2),
        nodes("m", 10, cpu=0.5),
        pod("old", cpu=4, node="n-0", status=TaskStatus.RELEASING, ours=False),
        *specs,
    )
    cluster.add(gang("big", 2, 4))
    assert not cluster.cycle().bindings
    return cluster


def test_room_next_to_a_pod_that_never_leaves_is_not_kept_for_ever() -> None:
    cluster = stuck()
    cluster.add(gang("small", 1))
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert outcome.wake_at == cluster.now + 300, "nothing else would bring the cycle that gives the room away"
    assert not cluster.cycle(seconds=299).bindings
    assert bindings(cluster.cycle(seconds=1)) == {"small-w-0": "n-1"}
    audit(cluster.cache)


def test_nor_is_it_kept_for_a_gang_that_starves() -> None:
    cluster = stuck()
    for _ in range(4):
        cluster.cycle(seconds=HOUR)
    cluster.add(gang("small", 1))
    assert bindings(cluster.cycle()) == {"small-w-0": "n-1"}


def test_nor_next_to_a_victim() -> None:
    cluster = Cluster.of(nodes("n", 2), PriorityClassSpec("high", 10), configuration=PREEMPTING)
    cluster.add(pod_group("low", 1), pod("low-0", "low", 4, node="n-0"), gang("big", 2, 4, priority_class="high"))
    assert evictions(cluster.cycle()) == {"low-0"}
    cluster.change_pod("low-0", status=TaskStatus.RELEASING)
    cluster.add(gang("small", 1))
    assert not cluster.cycle(seconds=299).bindings
    assert bindings(cluster.cycle(seconds=1)) == {"small-w-0": "n-1"}
    audit(cluster.cache)


def test_nor_for_quota_that_it_holds() -> None:
    leaving = pod("old", "gone", cpu=2, node="n-0", status=TaskStatus.RELEASING)
    cluster = Cluster.of(nodes("n", 2), queue("q", capability=resources(5)), queue("other"))
    cluster.add(pod_group("gone", 0, queue="q"), leaving, gang("big", 1, 4, queue="q"))
    assert not cluster.cycle().bindings
    cluster.add(gang("small", 1, 4, queue="other"))
    assert not cluster.cycle(seconds=299).bindings
    assert bindings(cluster.cycle(seconds=1)) == {"small-w-0": "n-1"}
    audit(cluster.cache)


def test_nor_for_a_port_that_it_has() -> None:
    holder = pod("old", cpu=1, node="n-0", status=TaskStatus.RELEASING, ours=False, scheduling=ports(80))
    cluster = Cluster.of(nodes("n", 1), holder, gang("big", 1, 3, scheduling=ports(80)))
    assert not cluster.cycle().bindings
    cluster.add(gang("small", 1, 3))
    assert not cluster.cycle(seconds=299).bindings
    assert bindings(cluster.cycle(seconds=1)) == {"small-w-0": "n-0"}
    audit(cluster.cache)


WEB, REFUSES_WEB = {"app": "web"}, constraints(far("host", app="web"))


@pytest.mark.parametrize(
    ("stays", "comes"),
    [
        pytest.param({"labels": WEB}, {"scheduling": REFUSES_WEB}, id="a gang that keeps away from it"),
        pytest.param({"scheduling": REFUSES_WEB}, {"labels": WEB}, id="a gang that it keeps away"),
    ],
)
def test_nor_for_who_may_not_be_in_its_company(stays: dict[str, Any], comes: dict[str, Any]) -> None:
    old = pod("old", cpu=1, node="n-0", status=TaskStatus.RELEASING, ours=False, **stays)
    cluster = Cluster.of(node("n-0", labels={"host": "n-0"}), old, gang("big", 1, 3, **comes))
    assert not cluster.cycle().bindings
    cluster.add(gang("small", 1, 3))
    assert not cluster.cycle(seconds=299).bindings
    assert bindings(cluster.cycle(seconds=1)) == {"small-w-0": "n-0"}
    audit(cluster.cache)


def test_who_needs_its_company_may_count_on_it() -> None:
    """Room is promised with a view to what will be there: a pod that does not leave will."""
    cluster = Cluster.of(
        [PriorityClassSpec("high", 10), PriorityClassSpec("low", 1)],
        node("n-0", 3, labels={"host": "n-0"}),
        pod("old", cpu=1, node="n-0", labels=WEB, status=TaskStatus.RELEASING, ours=False),
        [pod_group("low", 0, priority_class="low"), pod("low-0", "low", 2, node="n-0")],
        gang("big", 1, 2, priority_class="high", scheduling=constraints(near("host", app="web"))),
        configuration=PREEMPTING,
    )
    assert not cluster.cycle().evictions
    assert not cluster.cycle(seconds=299).evictions
    assert evictions(cluster.cycle(seconds=1)) == {"low-0"}
    audit(cluster.cache)


def test_it_counts_for_nothing_where_pods_are_spread() -> None:
    """As kube-scheduler has it, which counts no pod with a deletion time."""
    cluster = Cluster.of(
        zone_nodes("ab"),
        pod("old", cpu=1, node="a-0", labels=WEB, status=TaskStatus.RELEASING, ours=False),
        pod("full", cpu=4, node="b-0", ours=False),
    )
    cluster.cycle()
    cluster.cycle(seconds=HOUR)
    cluster.add(gang("web", 1, labels=WEB, scheduling=constraints(spread("zone", app="web"))))
    assert bindings(cluster.cycle()) == {"web-w-0": "a-0"}
    audit(cluster.cache)


@pytest.mark.parametrize("happens", ["it is gone", "it stays", "its labels change", "its node is another"])
def test_the_counts_of_its_company_hold_whatever_happens_to_it(happens: str) -> None:
    cluster = stuck(pod("beside", cpu=1, ours=False, node="m-0", scheduling=REFUSES_WEB))
    cluster.change_pod("old", labels=WEB)
    cluster.cycle(seconds=HOUR)
    match happens:
        case "it is gone":
            cluster.delete("old")
        case "it stays":
            cluster.change_pod("old", status=TaskStatus.RUNNING)
        case "its labels change":
            cluster.change_pod("old", labels={"app": "db"})
        case _:
            cluster.add(node("n-0", 8, labels={"host": "n-0"}))
    audit(cluster.cache)
    cluster.cycle()
    audit(cluster.cache)


def test_nor_for_a_device_that_it_has() -> None:
    """Kubernetes takes the allocation away when the last user of the claim is gone."""
    cluster = Cluster.of(nodes("n", 1))
    tell(cluster, gpus("n-0", 1), claim("old", got=["n-0/gpu-0"]), claim("new"))
    cluster.add(pod_group("gone", 0), user("old", "gone", "old", node="n-0", status=TaskStatus.RELEASING))
    cluster.add(pod_group("big", 1), user("big-0", "big", "new", cpu=3))
    assert not cluster.cycle().bindings
    cluster.add(gang("small", 1, 3))
    assert not cluster.cycle(seconds=299).bindings
    assert bindings(cluster.cycle(seconds=1)) == {"small-w-0": "n-0"}
    audit(cluster.cache)


def test_when_it_leaves_at_last_the_room_is_there_for_who_waits() -> None:
    cluster = stuck()
    cluster.cycle(seconds=HOUR)
    cluster.delete("old")
    assert bindings(cluster.cycle()).keys() == {"big-w-0", "big-w-1"}
    assert cluster.cache.nodes["n-0"].overdue is None
    audit(cluster.cache)


@pytest.mark.parametrize("again", [TaskStatus.RELEASING, TaskStatus.RUNNING])
def test_what_is_told_of_an_overdue_pod_does_not_begin_its_time_anew_unless_it_stays(again: TaskStatus) -> None:
    cluster = stuck()
    cluster.cycle(seconds=HOUR)
    cluster.change_pod("old", status=again, labels={"a": "b"})
    cluster.add(gang("small", 1))
    assert bindings(cluster.cycle()) == {"small-w-0": "n-1"}
    audit(cluster.cache)


def test_a_pod_that_begins_to_leave_has_the_whole_time() -> None:
    cluster = stuck()
    cluster.cycle(seconds=HOUR)
    spec = cluster.cache.tasks["uid-old"].spec
    cluster.delete("old")
    cluster.add(replace(spec, uid="another"), gang("small", 1))
    assert not cluster.cycle().bindings
    assert not cluster.cycle(seconds=299).bindings
    assert bindings(cluster.cycle(seconds=1)) == {"small-w-0": "n-1"}
