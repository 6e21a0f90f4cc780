"""Head and worker pods of a RayCluster, as manifests ready for the API server.

The shape is KubeRay's: Ray's own autoscaler, kubectl plugins, dashboards and users' NetworkPolicies rely on these
labels, variables, ports and commands. What is new is the gang: pods that our scheduler places carry a scheduling gate
from their first moment, so that none of them can start before all of them have a place.

Pure: the caller chooses the names (see `muster.ray.names`) and posts the result.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from muster.api.raycluster import RayCluster, WorkerGroupSpec
from muster.ray import labels, names
from muster.ray.authentication import mount_token
from muster.ray.autoscaler import add_autoscaler, is_version_2, never_restarted
from muster.ray.autoscaler_access import autoscaler_account
from muster.ray.container import complete_ray_container
from muster.ray.environment import head_address_env
from muster.ray.every_pod import EveryPod
from muster.ray.fault_tolerance import head_annotations
from muster.ray.gang_membership import GangMembership
from muster.ray.init_container import wait_gcs_ready
from muster.ray.owner import owner_reference
from muster.ray.pod_options import PodOptions
from muster.ray.ray_node import RayNode
from muster.ray.template_hash import template_hash
from muster.ray.volumes import add_shared_memory

Manifest = dict[str, Any]

_DEFAULTS: Final = PodOptions()


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """Which worker of its group a pod is.

    `replica` is the lowest index that no live replica of the group has. A replica of several hosts also has a name,
    shared by its pods, and numbers its hosts from 0.
    """

    replica: int = 0
    replica_name: str | None = None
    host: int | None = None

    def labels(self) -> dict[str, str]:
        """The labels that tell the replica and host."""
        index = {labels.REPLICA_INDEX: str(self.replica)}
        if self.replica_name is None:
            return index
        name = names.label_value(self.replica_name)
        return index | {labels.REPLICA_NAME: name, labels.HOST_INDEX: str(self.host or 0)}


def head_pod(
    cluster: RayCluster, name: str, gang: GangMembership | None = None, options: PodOptions = _DEFAULTS
) -> Manifest:
    """The head pod. Raises QuantityError when the Ray container's resources can't be read."""
    pod = _ray_pod(cluster, RayNode.head(cluster, options.cluster_domain), name, gang, options)
    pod["metadata"]["annotations"].update(head_annotations(cluster))
    if cluster.spec.autoscaling:
        add_autoscaler(pod["spec"], cluster, autoscaler_account(cluster), options)
    options.every_pod.add_sidecars(pod["spec"], is_head=True)
    return pod


def worker_pod(
    cluster: RayCluster,
    group: WorkerGroupSpec,
    name: str,
    gang: GangMembership | None = None,
    *,
    place: WorkerPlace = WorkerPlace(),
    options: PodOptions = _DEFAULTS,
) -> Manifest:
    """One worker pod of this group. Raises QuantityError when the Ray container's resources can't be read."""
    node = RayNode.worker(cluster, group, options.cluster_domain)
    pod = _ray_pod(cluster, node, name, gang, options)
    pod["metadata"]["labels"].update(place.labels())
    options.every_pod.add_sidecars(pod["spec"], is_head=False)
    if options.inject_init_container:
        spec = pod["spec"]
        wait = wait_gcs_ready(node, spec["containers"][0], options)
        spec["initContainers"] = [*(spec.get("initContainers") or []), wait]
    return pod


def selector(cluster: str) -> dict[str, str]:
    """The label that all pods of a cluster have, and no others."""
    return {labels.CLUSTER: cluster}


def _ray_pod(
    cluster: RayCluster, node: RayNode, name: str, gang: GangMembership | None, options: PodOptions
) -> Manifest:
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(cluster, node, name, options.every_pod),
        "spec": _spec(cluster, node, options),
    }
    if gang is not None:
        gang.join(pod, node.group)
    return pod


def _metadata(cluster: RayCluster, node: RayNode, name: str, every_pod: EveryPod) -> dict[str, Any]:
    template: Mapping[str, Any] = node.template.get("metadata") or {}
    annotations = {**dict(every_pod.annotations), **(template.get("annotations") or {})}
    overwrite = cluster.metadata.annotations.get(labels.OVERWRITE_CONTAINER_COMMAND)
    if overwrite is not None:
        annotations[labels.OVERWRITE_CONTAINER_COMMAND] = overwrite
    annotations[labels.TEMPLATE_HASH] = template_hash(node)
    finalizers = template.get("finalizers")
    return {
        "name": name,
        "namespace": cluster.metadata.namespace,
        **({"finalizers": list(finalizers)} if finalizers else {}),
        "labels": {**dict(every_pod.labels), **_labels(cluster.metadata.name, node, template.get("labels") or {})},
        "annotations": annotations,
        "ownerReferences": [owner_reference(cluster)],
    }


def _labels(cluster: str, node: RayNode, user: Mapping[str, str]) -> dict[str, str]:
    """Users may override all but the labels that tell which node of which cluster a pod is."""
    fixed = {labels.CLUSTER: cluster, labels.NODE_TYPE: node.node_type, labels.GROUP: names.label_value(node.group)}
    usual = {
        labels.IS_RAY_NODE: "yes",
        labels.IDENTIFIER: names.identifier(cluster, node.node_type),
        labels.APP_NAME: labels.APPLICATION,
        labels.CREATED_BY: labels.OPERATOR,
    }
    return {**usual, **user, **node.group_labels, **fixed}


def _spec(cluster: RayCluster, node: RayNode, options: PodOptions) -> dict[str, Any]:
    spec: dict[str, Any] = copy.deepcopy(node.template["spec"])
    keep = cluster.metadata.annotations.get(labels.OVERWRITE_CONTAINER_COMMAND) == "true"
    complete_ray_container(spec["containers"][0], node, options, keep_command=keep)
    mount_token(cluster, spec, spec["containers"][0])
    add_shared_memory(spec, node)
    for container in spec.get("initContainers") or []:
        container["env"] = [*(container.get("env") or []), *head_address_env(node)]
    if is_version_2(cluster.spec):
        never_restarted(spec)
    return spec
