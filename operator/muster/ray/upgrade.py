"""`upgradeStrategy: Recreate`: whether pods were made from what the spec says now.

A hash of all that pods of the cluster are made from, in an annotation of each of them. Not only of the head, as KubeRay
has it: an operator that is killed after it has deleted the head must still find the workers of the old generation. What
scaling, suspending and queueing change is left out (numbers, tolerations, gates), and what shows in no pod.

A hash that was not made here, or by another scheme, says nothing: such pods are taken as they are, and get one. So
neither a move from KubeRay nor a newer Muster recreates a cluster; `_SCHEME` changes with what goes into the hash.
KubeRay's own two annotations are on the head as well, for those who look at them; the version in them is none of
KubeRay's, so that KubeRay, too, would take the pods as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from muster.api.raycluster import RayCluster, RayClusterSpec
from muster.ray import labels, names
from muster.ray.template_hash import content_hash

RECREATE: Final = "Recreate"

_SCHEME: Final = "2"
_OF_THE_SPEC: Final = ("headGroupSpec", "workerGroupSpecs", "suspend", "managedBy", "upgradeStrategy")
_OF_THE_HEAD: Final = ("headService", "serviceType", "enableIngress", "ingressOptions", "template")
_OF_A_GROUP: Final = (
    "replicas",
    "minReplicas",
    "maxReplicas",
    "numOfHosts",
    "scaleStrategy",
    "suspend",
    "idleTimeoutSeconds",
    "priority",
    "template",
)
_OF_A_POD: Final = ("tolerations", "schedulingGates")
_OF_THE_AUTOSCALER: Final = ("idleTimeoutSeconds", "upscalingMode")


def recreates(spec: RayClusterSpec) -> bool:
    """Whether a changed spec is to replace the cluster's pods."""
    return spec.upgrade_strategy is not None and spec.upgrade_strategy.type == RECREATE


def generation_hash(cluster: RayCluster) -> str:
    """What the cluster's pods are made from, in short. Pods of two hashes are of two generations."""
    spec = cluster.spec.dump()
    head = cluster.spec.head_group_spec
    groups = sorted(cluster.spec.worker_groups, key=lambda group: group.group_name)
    said = {
        "spec": _without(spec, (*_OF_THE_SPEC, "headServiceAnnotations", "autoscalerOptions")),
        "head": _without(head.dump(), _OF_THE_HEAD),
        "headService": names.head_service(cluster.metadata.name, head.head_service),
        "headTemplate": _template(head.template),
        "groups": [[_without(group.dump(), _OF_A_GROUP), group.hosts, _template(group.template)] for group in groups],
    }
    if cluster.spec.autoscaling:
        said["autoscaler"] = _without(spec.get("autoscalerOptions") or {}, _OF_THE_AUTOSCALER)
    return f"{_SCHEME}-{content_hash(said)}"


def generation_annotations(generation: str, *, is_head: bool) -> dict[str, str]:
    """The annotations by which a pod tells its generation."""
    if not is_head:
        return {labels.RECREATE_HASH: generation}
    return {
        labels.RECREATE_HASH: generation,
        labels.UPGRADE_STRATEGY_RECREATE_HASH: generation,
        labels.KUBERAY_VERSION: f"muster-{_SCHEME}",
    }


def is_known(annotations: Mapping[str, str]) -> bool:
    """Whether the pod's annotations tell a generation that can be compared."""
    return annotations.get(labels.RECREATE_HASH, "").startswith(f"{_SCHEME}-")


def is_outdated(annotations: Mapping[str, str], generation: str) -> bool:
    """Whether the pod is known to be of another generation."""
    return is_known(annotations) and annotations[labels.RECREATE_HASH] != generation


def _template(template: Mapping[str, Any]) -> dict[str, Any]:
    return {**_without(template, ("spec",)), "spec": _without(template.get("spec") or {}, _OF_A_POD)}


def _without(said: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """What is left, without what is null: to write null is to say nothing."""
    return {key: value for key, value in said.items() if key not in keys and value is not None}
