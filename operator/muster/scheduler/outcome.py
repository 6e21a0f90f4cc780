"""What a cycle decided, as plain values that the engine carries out and the simulator applies to itself.

`bindings` and `evictions` are work to do. Everything else holds only what differs from what was said before, so an
idle cluster has an empty Outcome.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.scheduler.reasons import Reason
from muster.scheduler.resources import Resources
from muster.scheduler.specs import Condition, Phase, PodVerdict

ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Binding:
    """Bind this pod to this node. The model holds the task as Binding already.

    `volumes` are the claims (`namespace/name`) that wait for the node to be known, each with the volume that it is to
    get, empty where one has to be made; they have to be bound first. A pod to `delegate` is pinned to the node for the
    default scheduler to bind it, volumes and devices included.
    """

    task_uid: str
    namespace: str
    pod: str
    node: str
    job: str
    volumes: tuple[tuple[str, str], ...] = ()
    delegate: bool = False


@dataclass(frozen=True, slots=True)
class Eviction:
    """Delete this pod. The model holds the task as Releasing already. `by` is the PodGroup that gains by it."""

    task_uid: str
    namespace: str
    pod: str
    node: str
    job: str
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class Pipelined:
    """A task that ends the cycle waiting for room that is being freed on this node."""

    task_uid: str
    namespace: str
    pod: str
    node: str
    job: str


@dataclass(frozen=True, slots=True)
class PodGroupStatus:
    """What the PodGroup should say.

    `companions` (role to node), `broken_since` and `minimum_met` (what a gang with pods on nodes must not fall below)
    are persisted as annotations.
    """

    phase: Phase
    conditions: tuple[Condition, ...]
    running: int
    succeeded: int
    failed: int
    reason: Reason | None = None
    companions: Mapping[str, str] = field(default_factory=dict)
    broken_since: float | None = None
    minimum_met: int | None = None


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """What the Queue uses. `deserved` and `share` are None when no plugin computes them.

    `problem` says why the queue, and with it every gang in it, can't be used.
    """

    allocated: Resources
    deserved: Resources | None = None
    share: float | None = None
    overused: bool | None = None
    problem: Reason | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """One cycle's decisions. `wake_at` is the next time (Unix seconds) at which a deadline needs a cycle.

    `orphans` are pods (`namespace/name`) whose PodGroup is not there to say why they wait: one of each such gang.
    """

    bindings: tuple[Binding, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    pipelined: tuple[Pipelined, ...] = ()
    pod_groups: Mapping[str, PodGroupStatus] = field(default_factory=dict)
    queues: Mapping[str, QueueStatus] = field(default_factory=dict)
    pods: Mapping[str, PodVerdict] = field(default_factory=dict)
    orphans: Mapping[str, Reason] = field(default_factory=dict)
    wake_at: float | None = None
