"""The gang of a Ray cluster: its PodGroup and its Queue, as manifests.

The gang is what has to start together: the head and the desired workers, or, where Ray's autoscaler decides, the head
and the least number of workers. A suspended worker group has no part in it, nor has a pod that another scheduler
places. `minResources` is what these pods really ask for, with everything that the operator adds to them.

A RayJob's PodGroup also names the submitter as a *companion*: the scheduler keeps a place for it, though it comes
later and does not count as a member. A cluster that a RayJob made has no PodGroup of its own; its pods are members of
the RayJob's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.api.fieldtypes import INT32_MAX
from muster.api.podgroup import PodGroup, PodGroupPhase
from muster.api.queue import Queue
from muster.api.raycluster import RayCluster, RayClusterSpec, WorkerGroupSpec
from muster.api.rayjob import RayJob, SubmissionMode
from muster.quantities import format_quantity
from muster.ray import labels, names
from muster.ray.autoscaler import autoscaler_resources
from muster.ray.copied_annotations import copied_annotations
from muster.ray.gang_membership import GangMembership
from muster.ray.gang_update import desired_update, released
from muster.ray.init_container import WAIT_RESOURCES
from muster.ray.owner import owner_reference
from muster.ray.pod_options import PodOptions
from muster.ray.scheduling_request import Amounts, scheduling_request

__all__ = [
    "Gang",
    "desired_update",
    "gang_of",
    "made_by_ray_job",
    "pod_group_name",
    "queue",
    "queue_name",
    "ray_cluster_pod_group",
    "ray_job_pod_group",
    "released",
]

Manifest = dict[str, Any]

_DEFAULTS = PodOptions()
WAIT_GCS_READY = {"resources": {"requests": WAIT_RESOURCES}}

_NOT_COPIED = (labels.LAST_APPLIED, labels.COMPANIONS, labels.COMPANION_NODES)
_SCHEDULERS_ROOM = 64 * 1024
"""Bytes of annotations that are left for the scheduler, which says there why the gang waits."""
_POD_FIELDS = (
    "resources",
    "overhead",
    "nodeSelector",
    "affinity",
    "tolerations",
    "priorityClassName",
    "preemptionPolicy",
)
_CONTAINER_FIELDS = ("resources", "ports", "restartPolicy")


@dataclass(frozen=True, slots=True)
class Gang:
    """What has to start together: members per role, and what they ask for in all."""

    members: Mapping[str, int] = field(default_factory=dict)
    resources: Amounts = field(default_factory=Counter)

    @property
    def size(self) -> int:
        """minMember."""
        return min(sum(self.members.values()), INT32_MAX)


def gang_of(
    spec: RayClusterSpec,
    *,
    options: PodOptions = _DEFAULTS,
    scheduler_name: str = labels.SCHEDULER_NAME,
    companions: Iterable[Mapping[str, Any]] = (),
) -> Gang:
    """The gang of a cluster with this spec; an empty one while the cluster is suspended.

    `options` say what the operator adds to the pods, `scheduler_name` who places the gang. `companions` are
    pod specs whose request is part of the resources, though they are no members. Raises QuantityError.
    """
    if spec.suspend:
        return Gang()
    members: dict[str, int] = {}
    resources: Amounts = Counter()
    for role, pods, request in _roles(spec, options, scheduler_name):
        members[role] = pods
        resources.update({name: amount * pods for name, amount in request.items()})
    for companion in companions:
        resources.update(scheduling_request(companion))
    return Gang(members, resources)


def pod_group_name(owner: RayCluster | RayJob) -> str:
    """The PodGroup that the pods of this cluster or job are members of."""
    job = _ray_job_of(owner) if isinstance(owner, RayCluster) else None
    return names.pod_group(job or owner.metadata.name)


def ray_cluster_pod_group(
    cluster: RayCluster, *, options: PodOptions = _DEFAULTS, scheduler_name: str = labels.SCHEDULER_NAME
) -> Manifest | None:
    """The PodGroup of a cluster that stands alone; None for one that a RayJob made. Raises QuantityError."""
    if made_by_ray_job(cluster):
        return None
    gang = gang_of(cluster.spec, options=options, scheduler_name=scheduler_name)
    return _pod_group(cluster, gang, companions=[])


def ray_job_pod_group(
    job: RayJob,
    submitter: Mapping[str, Any] | None = None,
    *,
    cluster_spec: RayClusterSpec | None = None,
    options: PodOptions = _DEFAULTS,
    scheduler_name: str = labels.SCHEDULER_NAME,
) -> Manifest:
    """The PodGroup of a RayJob.

    `submitter` is the pod spec of its submitter; it counts in K8sJobMode only. `cluster_spec` is the spec of the
    cluster as it is now (an autoscaler may have changed it), by default the one in the RayJob. Raises QuantityError,
    and ValueError without any cluster spec.
    """
    spec = cluster_spec or job.spec.ray_cluster_spec
    if spec is None:
        raise ValueError(f"RayJob {job.metadata.namespace}/{job.metadata.name} has no rayClusterSpec")
    comes = submitter is not None and job.spec.mode == SubmissionMode.K8S_JOB and not spec.suspend
    companions = [submitter] if submitter is not None and comes and _is_placed(submitter, scheduler_name) else []
    gang = gang_of(spec, options=options, scheduler_name=scheduler_name, companions=companions)
    return _pod_group(job, gang, companions)


def queue_name(owner: RayCluster | RayJob) -> str | None:
    """The queue that the owner's label names; None for the default queue."""
    return owner.metadata.labels.get(labels.QUEUE_NAME) or None


def queue(name: str) -> Manifest:
    """A Queue to create where a job names one that does not exist: no cap, an equal share, reclaimable."""
    return {
        "apiVersion": Queue.definition.api_version,
        "kind": Queue.definition.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True},
    }


def made_by_ray_job(cluster: RayCluster) -> bool:
    """Whether the cluster is a RayJob's: its pods are members of that one's gang."""
    return _ray_job_of(cluster) is not None


def _ray_job_of(cluster: RayCluster) -> str | None:
    """The RayJob that controls the cluster. The labels that tell of one are copied by whoever copies the cluster."""
    owner = next((each for each in cluster.metadata.owner_references or [] if each.controller), None)
    if owner is None or owner.kind != RayJob.definition.kind:
        return None
    return owner.name if owner.api_version.partition("/")[0] == RayJob.definition.group else None


def _is_placed(pod_spec: Mapping[str, Any], scheduler_name: str) -> bool:
    """Whether our scheduler places a pod of this spec; one that names another is no member of a gang."""
    return GangMembership("", scheduler_name=scheduler_name).places(pod_spec)


def _roles(spec: RayClusterSpec, options: PodOptions, scheduler_name: str) -> Iterable[tuple[str, int, Amounts]]:
    """Role, number of pods, request of one pod; roles without pods are left out."""
    added = options.every_pod
    head = spec.head_group_spec.template.get("spec") or {}
    if _is_placed(head, scheduler_name):
        yield labels.HEAD_GROUP, 1, scheduling_request(head, more_containers=[*_autoscaler(spec), *added.head_sidecars])
    for group in spec.worker_groups:
        worker = group.template.get("spec") or {}
        pods = min(_least_pods(group) if spec.autoscaling else group.desired_pods, INT32_MAX)
        if pods > 0 and _is_placed(worker, scheduler_name):
            waits = [WAIT_GCS_READY] if options.inject_init_container else []
            request = scheduling_request(worker, more_containers=added.worker_sidecars, more_init_containers=waits)
            yield group.group_name, pods, request


def _least_pods(group: WorkerGroupSpec) -> int:
    return 0 if group.suspend else group.minimum * group.hosts


def _autoscaler(spec: RayClusterSpec) -> list[Mapping[str, Any]]:
    resources = autoscaler_resources(spec)
    return [] if resources is None else [{"resources": resources}]


def _pod_group(owner: RayCluster | RayJob, gang: Gang, companions: list[Mapping[str, Any]]) -> Manifest:
    return {
        "apiVersion": PodGroup.definition.api_version,
        "kind": PodGroup.definition.kind,
        "metadata": {
            "name": pod_group_name(owner),
            "namespace": owner.metadata.namespace,
            "annotations": _annotations(owner, companions),
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {
            "minMember": gang.size,
            "minTaskMember": dict(gang.members),
            "minResources": {name: format_quantity(amount, name) for name, amount in sorted(gang.resources.items())},
            **_placement(owner.metadata.labels),
        },
        "status": {"phase": PodGroupPhase.PENDING.value},
    }


def _annotations(owner: RayCluster | RayJob, companions: list[Mapping[str, Any]]) -> dict[str, str]:
    added: dict[str, str] = {}
    if companions:
        described = [{"role": labels.SUBMITTER_GROUP, "podSpec": _scheduling_part(spec)} for spec in companions]
        added[labels.COMPANIONS] = json.dumps(described, sort_keys=True, separators=(",", ":"))
    copied = copied_annotations(owner.metadata.annotations, without=_NOT_COPIED, beside=added, room=_SCHEDULERS_ROOM)
    return copied | added


def _scheduling_part(pod_spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the scheduler looks at, and nothing that may be secret or long."""
    part: dict[str, Any] = {key: pod_spec[key] for key in _POD_FIELDS if pod_spec.get(key)}
    if node := pod_spec.get("nodeName"):
        part |= _on_node(node)
    for kind in ("containers", "initContainers"):
        if pod_spec.get(kind):
            part[kind] = [
                {key: container[key] for key in _CONTAINER_FIELDS if container.get(key)} for container in pod_spec[kind]
            ]
    return part


def _on_node(node: str) -> dict[str, Any]:
    """A pod that names its node goes there, whatever its affinity says and whether it tolerates the taints or not."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}, "tolerations": [{"operator": "Exists"}]}


def _placement(owner_labels: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the PodGroup's spec that labels of the owner choose."""
    placement: dict[str, Any] = {}
    if queue_label := owner_labels.get(labels.QUEUE_NAME):
        placement["queue"] = queue_label
    if priority_class := owner_labels.get(labels.PRIORITY_CLASS):
        placement["priorityClassName"] = priority_class
    topology: dict[str, Any] = {}
    if mode := owner_labels.get(labels.NETWORK_TOPOLOGY_MODE):
        topology["mode"] = mode
    if tier := owner_labels.get(labels.NETWORK_TOPOLOGY_HIGHEST_TIER):
        topology["highestTierAllowed"] = int(tier)
    if topology:
        placement["networkTopology"] = topology
    return placement
