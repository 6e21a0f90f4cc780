"""What is counted in the end."""

from __future__ import annotations

import json

from bench.census import Census, Pod, count, decode_pod


def pod(gang: str, node: str = "", *, cpu: str = "1", namespace: str = "gangs") -> Pod:
    labels = {"bench.muster.dev/gang": gang} if gang else {}
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], **({"nodeName": node} if node else {})}
    return decode_pod(json.dumps({"metadata": {"namespace": namespace, "labels": labels}, "spec": spec}))


def census(*pods: Pod) -> Census:
    return count(pods, namespace="gangs", size=2, node_cpu=2)


def test_whole_and_partial_gangs_are_told_apart() -> None:
    found = census(pod("a", "n1"), pod("a", "n1"), pod("b", "n2"), pod("b"), pod("c"), pod("c"))
    assert found == Census(bound=3, unbound=3, whole=1, partial=1)


def test_a_gang_of_which_a_pod_has_been_deleted_is_partial() -> None:
    assert census(pod("a", "n1")).partial == 1


def test_pods_of_others_are_not_counted_but_hold_their_nodes() -> None:
    others = (pod("p", "n1", namespace="parked"), pod("", "n1", cpu="500m", namespace="others"))
    assert census(*others, pod("a", "n1")) == Census(bound=1, partial=1, overcommitted=1)


def test_a_node_that_is_just_full_is_not_overcommitted() -> None:
    assert census(pod("", "n1", cpu="1500m"), pod("", "n1", cpu="500m")).overcommitted == 0
