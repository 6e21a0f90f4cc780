"""Queue (scheduling.volcano.sh/v1beta1): a share of the cluster, for the gangs that name it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from muster.api.conditions import Condition
from muster.api.fieldtypes import Int32, ResourceList
from muster.api.metadata import ObjectMeta
from muster.api.model import Model, Resource
from muster.api.podgroup import DNS_1123_SUBDOMAIN
from muster.api.schema import Column, Definition, Schema


class QueueState(StrEnum):
    """Whether a queue takes gangs. An empty state means Open."""

    OPEN = "Open"
    CLOSED = "Closed"
    CLOSING = "Closing"
    UNKNOWN = "Unknown"


class Guarantee(Model):
    """Resources that no other queue may take."""

    resource: ResourceList | None = None


class ExtendCluster(Model):
    """A share in another cluster."""

    name: str | None = None
    weight: Int32 | None = None
    capacity: ResourceList | None = None


class NodeGroupTerms(Model):
    """Names of node groups."""

    required_during_scheduling_ignored_during_execution: list[str] | None = None
    preferred_during_scheduling_ignored_during_execution: list[str] | None = None


class QueueAffinity(Model):
    """Node groups that the queue's pods go to, or keep away from."""

    node_group_affinity: NodeGroupTerms | None = None
    node_group_anti_affinity: NodeGroupTerms | None = None


class QueueSpec(Model):
    """The share. An absent `reclaimable` means true, an absent `weight` means 1."""

    meanings: ClassVar[Mapping[str, str]] = {
        "weight": "The share of the queue, beside the weights of the others.",
        "capability": "The most that the gangs of the queue may use together.",
        "reclaimable": "Whether others may take back what the queue uses beyond its share; true if absent.",
        "extend_clusters": "Shares in other clusters; not used.",
        "type": "Not used.",
        "parent": "The queue above; root if absent.",
        "deserved": "What the queue can have back from others.",
        "priority": "The queue with the most goes first, and gives back last.",
        "dequeue_strategy": "Kept for Volcano; not used.",
    }

    weight: Annotated[Int32 | None, Schema(default=1, minimum=1, maximum=65535)] = None
    capability: ResourceList | None = None
    reclaimable: bool | None = None
    extend_clusters: list[ExtendCluster] | None = None
    guarantee: Guarantee | None = None
    affinity: QueueAffinity | None = None
    type: str | None = None
    parent: Annotated[str | None, Schema(max_length=253, pattern=DNS_1123_SUBDOMAIN)] = None
    deserved: ResourceList | None = None
    priority: Annotated[Int32 | None, Schema(minimum=0)] = None
    dequeue_strategy: Annotated[str | None, Schema(enum=("fifo", "traverse"), default="traverse")] = None


class Reservation(Model):
    """Nodes and resources held for the queue."""

    nodes: list[str] | None = None
    resource: ResourceList | None = None


class QueueStatus(Model):
    """The state and what is used. The counts of PodGroups are Volcano's; nothing keeps them current.

    `conditions` are Muster's: `Broken` says why a queue can't be used.
    """

    state: str | None = None
    conditions: list[Condition] | None = None
    unknown: Int32 | None = None
    pending: Int32 | None = None
    running: Int32 | None = None
    inqueue: Int32 | None = None
    completed: Int32 | None = None
    reservation: Reservation | None = None
    allocated: ResourceList | None = None


class Queue(Resource):
    """A share of the cluster. Cluster-scoped."""

    definition: ClassVar[Definition] = Definition(
        group="scheduling.volcano.sh",
        version="v1beta1",
        kind="Queue",
        plural="queues",
        singular="queue",
        short_names=("q", "queue-v1beta1"),
        namespaced=False,
        columns=(
            Column("PARENT", "string", ".spec.parent"),
            Column("STATE", "string", ".status.state"),
            Column("WEIGHT", "integer", ".spec.weight"),
            Column("AGE", "date", ".metadata.creationTimestamp"),
        ),
    )

    metadata: ObjectMeta
    spec: QueueSpec = Field(default_factory=QueueSpec)
    status: QueueStatus | None = None
