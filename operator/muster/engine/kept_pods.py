"""What is worth keeping of a pod: of the pods of others far less than the API server tells.

Most pods of a cluster are neither scheduled nor made here. They take room on a node, and affinity may mean them; how
their containers fare is nobody's business. What is left out here must be read by nobody: not by `task_spec`, nor by the
controllers, who look only at pods of Ray clusters and of Jobs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from muster.engine import wire_keys
from muster.kube.objects import Pod, controller_of
from muster.kube.pod_objects import PodStatus
from muster.kube.shared_parts import SharedParts

_APPS: Final = "apps/v1"
"""ReplicaSets, StatefulSets and DaemonSets: none of them is Ray's, nor a Job."""


class KeptPods:
    """What an informer of pods is to keep: `worth_keeping`, with what is equal in pods held once."""

    def __init__(self, scheduler_names: Collection[str]) -> None:
        self._scheduler_names = frozenset(scheduler_names)
        self._share = SharedParts()

    def __call__(self, pod: Pod, known: Pod | None) -> Pod:
        """What to keep of the pod; `known` is what was kept of it until now."""
        return self._share(worth_keeping(pod, scheduler_names=self._scheduler_names), known)


def worth_keeping(pod: Pod, *, scheduler_names: Collection[str]) -> Pod:
    """The pod, without what nobody here reads of it."""
    spec, meta, status = pod.spec, pod.metadata, pod.status
    claims = [each for each in spec.volumes if each.persistent_volume_claim is not None or each.ephemeral is not None]
    if len(claims) < len(spec.volumes):
        spec = msgspec.structs.replace(spec, volumes=claims)
    if is_bystander(pod, scheduler_names):
        notes = meta.annotations
        if not notes.keys() <= wire_keys.NOTES_ON_PODS:
            kept = {key: value for key, value in notes.items() if key in wire_keys.NOTES_ON_PODS}
            meta = msgspec.structs.replace(meta, annotations=kept)
        status = _status(status)
    return Pod(metadata=meta, spec=spec, status=status)


def is_bystander(pod: Pod, scheduler_names: Collection[str]) -> bool:
    """Whether a pod is on its node by another's decision, and is no business of the controllers either."""
    meta, spec = pod.metadata, pod.spec
    if spec.node_name is None or spec.scheduler_name in scheduler_names:
        return False
    owner = controller_of(meta)
    if owner is None or owner.api_version != _APPS:
        return False
    labels, notes = meta.labels, meta.annotations
    if wire_keys.GROUP_NAME in notes or wire_keys.COOLDOWN_TIME in notes or wire_keys.COOLDOWN_TIME in labels:
        return False
    return not any(key.startswith(wire_keys.RAY) for key in labels)


def _status(status: PodStatus) -> PodStatus:
    """Without how the containers fare; of the conditions the scheduler's complaint and what threw the pod out."""
    return PodStatus(
        phase=status.phase,
        reason=status.reason,
        message=status.message,
        conditions=[
            each
            for each in status.conditions
            if each.type == "DisruptionTarget" or (each.type == "PodScheduled" and each.status != "True")
        ],
        nominated_node_name=status.nominated_node_name,
        start_time=status.start_time,
        resource_claim_statuses=status.resource_claim_statuses,
    )
