"""Ports of the node: two pods that want the same one are not put together."""

from __future__ import annotations

import pytest

from muster.scheduler.company import HostPort
from muster.scheduler.plugins.host_ports import TAKEN
from muster.scheduler.specs import TaskStatus
from muster.testing import Cluster, bindings, gang, nodes, pod
from muster.testing_company import ports


@pytest.mark.parametrize(
    ("one", "other", "conflict"),
    [
        (HostPort(80), HostPort(80), True),
        (HostPort(80), HostPort(81), False),
        (HostPort(80, "UDP"), HostPort(80, "TCP"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.1"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"), False),
    ],
)
def test_ports_conflict_as_addresses_do(one: HostPort, other: HostPort, *, conflict: bool) -> None:
    assert one.conflicts(other) is other.conflicts(one) is conflict


def test_members_with_a_port_go_to_nodes_of_their_own_or_none_is_placed() -> None:
    cluster = Cluster.of(nodes("n", 2), gang("g", 2, scheduling=ports(80)))
    assert sorted(bindings(cluster.cycle()).values()) == ["n-0", "n-1"]
    cluster = Cluster.of(nodes("n", 2), gang("g", 3, scheduling=ports(80)))
    outcome = cluster.cycle()
    assert not outcome.bindings
    reason = outcome.pod_groups["default/g"].reason
    assert reason is not None
    assert reason.nodes == ((TAKEN, 2),)


def test_a_port_is_free_once_its_pod_has_left_and_who_waits_is_woken() -> None:
    holder = pod("x", node="n-0", ours=False, scheduling=ports(80, 443))
    cluster = Cluster.of(nodes("n", 1), holder, gang("g", 1, scheduling=ports(443)))
    assert not cluster.cycle().bindings
    cluster.change_pod("x", status=TaskStatus.RELEASING)
    outcome = cluster.cycle()
    assert not outcome.bindings
    assert [each.node for each in outcome.pipelined] == ["n-0"]
    cluster.delete("x")
    assert bindings(cluster.cycle()) == {"g-w-0": "n-0"}


def test_pods_without_ports_do_not_mind() -> None:
    cluster = Cluster.of(nodes("n", 1), pod("x", node="n-0", ours=False, scheduling=ports(80)), gang("g", 2))
    assert set(bindings(cluster.cycle()).values()) == {"n-0"}
