from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.kube.objects import Pod
from muster.kube.shared_parts import SharedParts

TOLERATIONS = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}]


def pod(name: str, *, owner: str = "rs", node: str = "n", image: str = "a", version: int = 1, **meta: Any) -> Pod:
    manifest = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "labels": {"app": "x"},
            "ownerReferences": [{"kind": "ReplicaSet", "uid": owner, "controller": True}] if owner else [],
            **meta,
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": image}], "tolerations": TOLERATIONS},
        "status": {"phase": "Running"},
    }
    return msgspec.json.decode(msgspec.json.encode(manifest), type=Pod)


def test_pods_of_one_controller_hold_in_common_what_is_equal_in_them() -> None:
    share = SharedParts()
    one, two = share(pod("one", node="n1"), None), share(pod("two", node="n2"), None)
    assert two == pod("two", node="n2")
    assert two.metadata.labels is one.metadata.labels
    assert two.metadata.owner_references is one.metadata.owner_references
    assert two.spec.containers is one.spec.containers
    assert two.status is one.status


def test_other_pods_come_in_between() -> None:
    share = SharedParts()
    one = share(pod("one"), None)
    stranger = share(pod("stranger", owner="other", image="b"), None)
    assert share(pod("two"), None).spec.containers is one.spec.containers
    assert stranger == pod("stranger", owner="other", image="b")


def test_a_pod_without_kin_shares_with_the_one_before_it() -> None:
    share = SharedParts()
    one, two = share(pod("one", owner=""), None), share(pod("two", owner="", image="b"), None)
    assert two == pod("two", owner="", image="b")
    assert two.spec.tolerations is one.spec.tolerations


@pytest.mark.parametrize("node", ["n", "n2"])
def test_a_pod_seen_again_keeps_what_has_not_changed(node: str) -> None:
    share = SharedParts()
    known = share(pod("one"), None)
    share(pod("two", image="b"), None)
    again = share(pod("one", node=node, version=2, labels={"app": "y"}), known)
    assert again == pod("one", node=node, version=2, labels={"app": "y"})
    assert again.spec.containers is known.spec.containers


def test_pods_on_one_node_have_its_name_in_common() -> None:
    share = SharedParts()
    one = share(pod("one", node="a-node"), None)
    share(pod("two", node="elsewhere"), None)
    assert share(pod("three", node="a-node"), None).spec.node_name is one.spec.node_name


def test_a_sibling_still_shares_when_the_first_one_has_changed() -> None:
    share = SharedParts()
    one = share(pod("one"), None)
    one = share(pod("one", version=2), one)
    share(pod("other", owner="other", image="b"), None)
    assert share(pod("two"), None).spec.containers is one.spec.containers


def test_of_controllers_that_had_no_pod_for_long_none_is_remembered() -> None:
    share = SharedParts(controllers=2)
    one = share(pod("one"), None)
    for name in ("x", "y"):
        share(pod(name, owner=name, image=name), None)
    two = share(pod("two"), None)
    assert two == pod("two")
    assert two.spec.containers is not one.spec.containers


def test_a_controller_s_next_pod_keeps_it_remembered() -> None:
    share = SharedParts(controllers=2)
    one = share(pod("one"), None)
    for name, owner in (("x", "x"), ("two", "rs"), ("y", "y")):
        share(pod(name, owner=owner, image="a" if owner == "rs" else name), None)
    assert share(pod("three"), None).spec.containers is one.spec.containers
