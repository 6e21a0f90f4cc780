"""Which changes of a child can alter what is done for its RayCluster.

On its way to a node a pod loses its gate, and its PodGroup gets the scheduler's word several times: nothing of that is
the cluster's business, and a look at it costs more than telling so. What is not known to be without effect counts.
"""

from __future__ import annotations

import msgspec

from muster.kube.objects import ApiObject, Pod, PodGroup


def concerns_cluster(old: ApiObject | None, new: ApiObject | None) -> bool:
    """Whether a RayCluster has to be looked at for this change of its child; None where there was or is none."""
    if isinstance(old, Pod) and isinstance(new, Pod):
        return not _only_lost_gates(old, new)
    if isinstance(old, PodGroup) and isinstance(new, PodGroup):
        return not _only_told_by_scheduler(old, new)
    return True


def _only_lost_gates(old: Pod, new: Pod) -> bool:
    before = old.metadata
    metadata = msgspec.structs.replace(
        new.metadata, resource_version=before.resource_version, generation=before.generation
    )
    spec = msgspec.structs.replace(new.spec, scheduling_gates=old.spec.scheduling_gates)
    return before == metadata and old.spec == spec and old.status == new.status


def _only_told_by_scheduler(old: PodGroup, new: PodGroup) -> bool:
    """The size is in the spec; a cluster has no companions, which would be in the annotations."""
    before = old.metadata
    metadata = msgspec.structs.replace(
        new.metadata,
        resource_version=before.resource_version,
        generation=before.generation,
        annotations=before.annotations,
    )
    return before == metadata and old.spec == new.spec
