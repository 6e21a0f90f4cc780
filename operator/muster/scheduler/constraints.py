"""Where a pod may run and where it would rather run: node affinity, taints and tolerations, and the company it keeps.

All values are frozen and hashable, so that pods with equal constraints are one shape. `PodConstraints.label_keys`
names the labels that matter; nodes that differ in no other label can share every verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muster.scheduler.company import Company, HostPort
from muster.scheduler.selectors import Requirement, whole_number

NODE_NAME_FIELD = "metadata.name"
HARD_EFFECTS = ("NoSchedule", "NoExecute")
"""The effects of taints that keep a pod off a node."""


@dataclass(frozen=True, slots=True)
class SelectorTerm:
    """A conjunction of requirements; a term without any matches nothing (Kubernetes' rule)."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node of that name and labels meets all of it."""
        if not self.labels and not self.fields:
            return False
        own = {NODE_NAME_FIELD: name}
        return all(each.matches(labels) for each in self.labels) and all(each.matches(own) for each in self.fields)


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A wish of node affinity; `weight` 1 to 100."""

    weight: int
    term: SelectorTerm


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint; `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        return f"{{{self.key}: {self.value}}}" if self.value else f"{{{self.key}}}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; an empty key with Exists tolerates every taint, an empty effect every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Kubernetes' matching rule."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "Exists":
                return True
            case "Equal":
                return bool(self.key) and self.value == taint.value
            case "Gt" | "Lt":
                return self._compares(taint)
        return False

    def _compares(self, taint: Taint) -> bool:
        """Whether the taint's number is above (below) ours (KEP-5471)."""
        theirs, own = whole_number(taint.value), whole_number(self.value)
        if theirs is None or own is None:
            return False
        return theirs > own if self.operator == "Gt" else theirs < own


@dataclass(frozen=True, slots=True)
class NodeGroups:
    """The groups of nodes that a queue's pods may use, may not use, would rather use (best first) and rather not."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.required or self.preferred or self.forbidden or self.unwanted)


@dataclass(frozen=True, slots=True)
class Seat:
    """A role in a job that minds which of its pods share nodes."""

    job: str
    role: str


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """The devices that a pod claims: the keys of its ResourceClaims, and its claims for which none was made yet.

    Only kube-scheduler can have claims allocated: a pod that is not `delegated` to it can't be bound.
    """

    claims: tuple[str, ...] = ()
    unmade: tuple[str, ...] = ()
    delegated: bool = True


@dataclass(frozen=True, slots=True)
class PodConstraints:
    """Everything but resources that decides on which node a pod may run.

    `node_selector` is sorted pairs. `required` is None without required node affinity, else a disjunction of terms.
    `revocable` pods bear nodes that are there only at certain times. `node_groups` are those of the pod's queue, where
    a plugin minds, `seat` is the pod's role in a job that minds who shares nodes. `images` are those of all containers,
    with tag, one for each container. `claims` are the keys of the pod's PersistentVolumeClaims, `devices` are its
    ResourceClaims. `assumed` (milli-CPU, bytes) is what scores count for containers that ask for no CPU or memory.
    `individual` is the pod's uid where a plugin asks about each pod by itself: it then shares its shape with no other.
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    required: tuple[SelectorTerm, ...] | None = None
    preferred: tuple[PreferredTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    revocable: bool = False
    node_groups: NodeGroups | None = None
    seat: Seat | None = None
    ports: tuple[HostPort, ...] = ()
    company: Company | None = None
    images: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    devices: DeviceUse | None = None
    assumed: tuple[int, int] = (0, 0)
    individual: str = ""

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node selector and the required node affinity admit the node."""
        if any(labels.get(key) != value for key, value in self.node_selector):
            return False
        return self.required is None or any(term.matches(name, labels) for term in self.required)

    def preference(self, name: str, labels: Mapping[str, str]) -> int:
        """The sum of the weights of the wishes that the node fulfils."""
        return sum(each.weight for each in self.preferred if each.term.matches(name, labels))

    def untolerated(self, taints: tuple[Taint, ...], effects: tuple[str, ...]) -> Iterator[Taint]:
        """The node's taints of these effects that the pod does not tolerate."""
        for taint in taints:
            if taint.effect in effects and not any(each.tolerates(taint) for each in self.tolerations):
                yield taint

    def label_keys(self) -> set[str]:
        """The label keys mentioned anywhere, and `metadata.name` when a field is."""
        keys = {key for key, _ in self.node_selector}
        for term in (*(self.required or ()), *(each.term for each in self.preferred)):
            keys.update(each.key for each in term.labels)
            keys.update(each.key for each in term.fields)
        return keys


UNCONSTRAINED = PodConstraints()
