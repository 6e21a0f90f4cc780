"""What the scheduler is told of devices: what there is of them, what classes there are, and what claims ask for.

All are frozen values. The words are those of dynamic resource allocation (DRA, `resource.k8s.io`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from muster.scheduler.constraints import SelectorTerm

DeviceId = tuple[str, str, str]
"""Driver, pool, name."""
CLASS_PREFIX = "deviceclass/"
"""Devices of a class as a resource: `deviceclass/gpu.example.com`, counted in thousandths as scalars are."""


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version, as an attribute's value."""

    text: str


AttributeValue = bool | int | str | Version
QualifiedName = tuple[str, str]
"""Domain (the driver's, where none is written) and identifier."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The nodes where something can be used: one, those of the terms, or (`terms` None) all."""

    node: str = ""
    terms: tuple[SelectorTerm, ...] | None = None

    def covers(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it can be used on the node of that name and labels."""
        if self.node:
            return self.node == name
        return self.terms is None or any(term.matches(name, labels) for term in self.terms)


EVERYWHERE = Reach()


@dataclass(frozen=True, slots=True)
class Device:
    """A device. `divisible` ones can be given to several claims at once; how far is for kube-scheduler to judge."""

    driver: str
    pool: str
    name: str
    attributes: Mapping[QualifiedName, AttributeValue] = field(default_factory=dict)
    capacity: Mapping[QualifiedName, Fraction] = field(default_factory=dict)
    reach: Reach = EVERYWHERE
    divisible: bool = False

    @property
    def id(self) -> DeviceId:
        """What claims call it."""
        return (self.driver, self.pool, self.name)


@dataclass(frozen=True, slots=True)
class SliceSpec:
    """A ResourceSlice: some devices of a pool. Only the newest `generation` of a pool counts."""

    name: str
    driver: str
    pool: str
    generation: int = 0
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClassSpec:
    """A DeviceClass: what its devices are like, as CEL expressions that must all hold."""

    name: str
    selectors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceAsk:
    """So many devices of a class that meet all `selectors` (CEL), or (`count` None) all that there are of them.

    With `admin` they are looked at, not taken.
    """

    device_class: str
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    admin: bool = False


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A part of a claim: what is asked for, or alternatives of which the first that can be had is taken."""

    name: str
    alternatives: tuple[DeviceAsk, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceAllocation:
    """The devices that a claim has got for itself, and where they can be used."""

    devices: tuple[DeviceId, ...] = ()
    reach: Reach = EVERYWHERE


@dataclass(frozen=True, slots=True)
class ResourceClaimSpec:
    """A ResourceClaim; without an allocation it has nothing yet."""

    namespace: str
    name: str
    requests: tuple[DeviceRequest, ...] = ()
    allocation: DeviceAllocation | None = None
    leaving: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Shortage:
    """Of a class `asked` devices are wanted; so many of those that match are `free`, of `total` that can be used."""

    device_class: str
    asked: int
    free: int
    total: int

    @property
    def resource(self) -> str:
        """The devices of the class, as the name of a resource."""
        return f"{CLASS_PREFIX}{self.device_class}"

    def __str__(self) -> str:
        wanted = f"{self.asked} asked" if self.asked else "all asked"
        return (
            f"node(s) had not enough devices of class {self.device_class} ({wanted}, {self.free} free of {self.total})"
        )


Selects = Callable[[str, Device], bool]
"""Whether a CEL expression selects a device."""


def selects_all(_expression: str, _device: Device) -> bool:
    """Where nobody can read expressions every device matches: kube-scheduler has the last word."""
    return True
