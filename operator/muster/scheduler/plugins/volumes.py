"""Volumes: where bound ones can be used, where late ones can be chosen or made, and how many a node takes."""

from __future__ import annotations

from collections.abc import Callable

from muster.scheduler.judge import CheckMaker, NodeCheck
from muster.scheduler.node import NodeInfo
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.storage import Storage
from muster.scheduler.task import Shape

CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NONE_LEFT = "node(s) didn't find available persistent volumes to bind"
OTHER_ZONE = "node(s) had no available volume zone"
TOO_MANY = "node(s) exceed max volume count"
ZONES = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
}
"""Labels of volumes and nodes that say where they are, with the names that they had once."""
_SEPARATOR = "__"

StorageGetter = Callable[[], Storage]


def volume_hurdle(storage: StorageGetter) -> Callable[[Shape], Reason | None]:
    """A pod whose claims are not ready can go nowhere, and no node would change that."""

    def hurdle(shape: Shape) -> Reason | None:
        for key in shape.scheduling.claims:
            problem = storage().hurdle(key)
            if problem is not None:
                return Reason(Code.VOLUME_NOT_READY, detail=problem, wakes=(Wake.VOLUMES,))
        return None

    return hurdle


def volume_binding(storage: StorageGetter) -> CheckMaker:
    """Bound volumes have to reach the node, late claims need a volume there."""

    def make(shape: Shape, _later: bool) -> NodeCheck | None:
        claims, cluster = shape.scheduling.claims, storage()
        if not claims:
            return None
        bound = cluster.bound_volumes(claims)
        late = any(cluster.is_late(key) for key in claims)

        def check(node: NodeInfo) -> str | None:
            if not all(volume.reaches(node.name, node.labels) for volume in bound):
                return CONFLICT
            return NONE_LEFT if late and cluster.choose_volumes(claims, node) is None else None

        return check

    return make


def volume_zone(storage: StorageGetter) -> CheckMaker:
    """A volume that is labelled with zones can be used in those only."""

    def make(shape: Shape, _later: bool) -> NodeCheck | None:
        volumes = storage().bound_volumes(shape.scheduling.claims) if shape.scheduling.claims else []
        wanted = [
            (new, old, set(value.split(_SEPARATOR)))
            for volume in volumes
            for new, old in ZONES.items()
            if (value := volume.labels.get(new, volume.labels.get(old))) is not None
        ]
        if not wanted:
            return None

        def check(node: NodeInfo) -> str | None:
            labels = node.labels
            if not any(new in labels or old in labels for new, old in ZONES.items()):
                return None
            here = all(labels.get(new, labels.get(old)) in values for new, old, values in wanted)
            return None if here else OTHER_ZONE

        return check

    return make


def volume_limits(storage: StorageGetter) -> CheckMaker:
    """CSI drivers attach only so many volumes to a node; one that is attached already costs nothing more."""

    def make(shape: Shape, later: bool) -> NodeCheck | None:
        claims, cluster = shape.scheduling.claims, storage()
        if not claims:
            return None
        wanted = set(cluster.attachments(claims))

        def check(node: NodeInfo) -> str | None:
            limits = cluster.csi_nodes[node.name].limits if node.name in cluster.csi_nodes else {}
            if not any(driver in limits for driver, _ in wanted):
                return None
            attached = {
                each
                for task in node.tasks.values()
                if task.shape.scheduling.claims and not (later and task.leaves)
                for each in cluster.attachments(task.shape.scheduling.claims)
            }
            new = [driver for driver, what in wanted if (driver, what) not in attached]
            for driver in set(new) & limits.keys():
                if sum(each == driver for each, _ in attached) + new.count(driver) > limits[driver]:
                    return TOO_MANY
            return None

        return check

    return make
