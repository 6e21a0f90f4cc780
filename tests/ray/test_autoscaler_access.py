"""The service account, role and binding of an autoscaler."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from muster.ray.autoscaler_access import RULES, autoscaler_account, role, role_binding, service_account
from tests.ray.ray_objects import ray_cluster, template

CLUSTER_ROLE = Path(__file__).parents[2] / "manifests" / "base" / "cluster-role.yaml"


def test_all_three_are_the_clusters_own_and_look_as_kuberays_do() -> None:
    cluster = ray_cluster(enableInTreeAutoscaling=True)
    for manifest in (service_account(cluster), role(cluster), role_binding(cluster)):
        meta = manifest["metadata"]
        assert (meta["name"], meta["namespace"]) == ("demo", "default")
        assert meta["labels"] == {
            "ray.io/cluster": "demo",
            "app.kubernetes.io/name": "kuberay",
            "app.kubernetes.io/created-by": "kuberay-operator",
        }
        assert [(owner["uid"], owner["controller"]) for owner in meta["ownerReferences"]] == [("uid-1", True)]


def test_a_long_name_is_cut_the_same_everywhere() -> None:
    cluster = ray_cluster(name="a" + "1" * 52, enableInTreeAutoscaling=True)
    name = "r" + "1" * 49
    assert service_account(cluster)["metadata"]["name"] == name
    binding = role_binding(cluster)
    assert binding["roleRef"]["name"] == role(cluster)["metadata"]["name"] == name
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]


def test_the_role_is_bound_to_the_account_that_the_user_names_and_to_those_in_use() -> None:
    cluster = ray_cluster(head={"template": template(spec={"serviceAccountName": "mine"})})
    assert autoscaler_account(cluster) == "mine"
    assert [one["name"] for one in role_binding(cluster, ["before", "mine"])["subjects"]] == ["before", "mine"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["resources"][0])
def test_what_the_autoscaler_is_granted_the_operator_has_itself(rule: dict[str, list[str]]) -> None:
    granted = yaml.safe_load_all(CLUSTER_ROLE.read_text()).__next__()["rules"]
    for verb in rule["verbs"]:
        assert any(
            set(rule["apiGroups"]) <= set(held["apiGroups"])
            and set(rule["resources"]) <= set(held["resources"])
            and verb in held["verbs"]
            for held in granted
        )
