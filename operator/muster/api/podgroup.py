"""PodGroup (scheduling.volcano.sh/v1beta1): a gang, and how far it has come.

There is no status subresource: whoever creates a PodGroup writes `status.phase: Pending` with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from muster.api.conditions import PodGroupCondition
from muster.api.fieldtypes import Count, Int32, Object, ResourceList
from muster.api.metadata import ObjectMeta
from muster.api.model import Model, Resource
from muster.api.schema import Column, Definition, Rule, Schema

DNS_1123_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


class PodGroupPhase(StrEnum):
    """How far a gang has come."""

    PENDING = "Pending"
    INQUEUE = "Inqueue"
    RUNNING = "Running"
    UNKNOWN = "Unknown"
    COMPLETED = "Completed"


class NetworkTopology(Model):
    """How near to each other the members must be."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!(has(self.highestTierAllowed) && has(self.highestTierName))",
            "highestTierAllowed and highestTierName can't both be set; keep one",
        ),
    )

    mode: Annotated[str | None, Schema(enum=("hard", "soft"), default="hard")] = None
    highest_tier_allowed: Annotated[int | None, Schema(minimum=0)] = None
    highest_tier_name: Annotated[str | None, Schema(max_length=253)] = None


class SubGroupPolicy(Model):
    """Groups within the gang."""

    name: str | None = None
    network_topology: NetworkTopology | None = None
    sub_group_size: Annotated[Int32 | None, Schema(default=1, minimum=1)] = None
    min_sub_groups: Annotated[Int32 | None, Schema(default=0, minimum=0)] = None
    label_selector: Object | None = None
    match_label_keys: Annotated[list[str] | None, Schema(list_type="atomic")] = None


class PodGroupSpec(Model):
    """What the gang needs. `minTaskMember`: role (pod annotation `volcano.sh/task-spec`) -> members."""

    meanings: ClassVar[Mapping[str, str]] = {
        "min_member": "How many pods have to have a place before any is bound.",
        "min_task_member": "The same for each role (annotation volcano.sh/task-spec of the pods).",
        "queue": "The Queue that the gang waits in and is charged to.",
        "priority_class_name": "The PriorityClass of the gang.",
        "min_resources": "What the gang needs to be admitted.",
        "sub_group_policy": "Groups within the gang.",
    }

    min_member: Count | None = None
    min_task_member: dict[str, Int32] | None = None
    queue: Annotated[str | None, Schema(default="default", max_length=253, pattern=DNS_1123_SUBDOMAIN)] = None
    priority_class_name: Annotated[str | None, Schema(max_length=253)] = None
    min_resources: ResourceList | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] | None = None


class PodGroupStatus(Model):
    """What the scheduler says about the gang."""

    phase: str | None = None
    conditions: list[PodGroupCondition] | None = None
    running: Count | None = None
    succeeded: Count | None = None
    failed: Count | None = None


class PodGroup(Resource):
    """A gang."""

    definition: ClassVar[Definition] = Definition(
        group="scheduling.volcano.sh",
        version="v1beta1",
        kind="PodGroup",
        plural="podgroups",
        singular="podgroup",
        short_names=("pg", "podgroup-v1beta1"),
        status_subresource=False,
        annotations={"helm.sh/resource-policy": "keep"},
        columns=(
            Column("STATUS", "string", ".status.phase"),
            Column("minMember", "integer", ".spec.minMember"),
            Column("RUNNINGS", "integer", ".status.running"),
            Column("AGE", "date", ".metadata.creationTimestamp"),
            Column("QUEUE", "string", ".spec.queue", priority=1),
        ),
    )

    metadata: ObjectMeta
    spec: PodGroupSpec = Field(default_factory=PodGroupSpec)
    status: PodGroupStatus | None = None
