"""Amounts of compute, as exact integers.

Milli-CPU, bytes of memory, and any number of scalar resources in milli-units; `pods` alone is counted whole. Nothing
here rounds, so accounts that are kept by adding and taking away never drift, and a comparison needs no epsilon.

Which dimensions a comparison looks at is part of its meaning. Volcano has three readings, and so have we:
`less_equal` with a dimension that is missing on the right read as zero or as infinite, and `violations`, which looks
only at what is asked for. `pods` limits nodes; asked of a queue it is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

ResourceKey = tuple[int, int, tuple[tuple[str, int], ...]]


class Missing(Enum):
    """How to read a dimension that only one side names."""

    ZERO = "zero"
    INFINITE = "infinite"


@dataclass(slots=True, eq=False)
class Resources:
    """`milli_cpu` in thousandths of a core, `memory` in bytes, `scalars` in milli-units (`pods` whole).

    Equality reads a missing scalar as zero. Instances that came in with a spec are never changed in place.
    """

    milli_cpu: int = 0
    memory: int = 0
    scalars: dict[str, int] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resources):
            return NotImplemented
        return self.key() == other.key()

    __hash__ = None  # type: ignore[assignment]  # an account changes in place

    def key(self) -> ResourceKey:
        """A hashable, comparable value; equal keys mean equal amounts."""
        scalars = self.scalars
        if len(scalars) == 1:
            ((name, value),) = scalars.items()
            return (self.milli_cpu, self.memory, ((name, value),) if value else ())
        return (self.milli_cpu, self.memory, tuple(sorted(item for item in scalars.items() if item[1])))

    def clone(self) -> Resources:
        """An independent copy."""
        return Resources(self.milli_cpu, self.memory, dict(self.scalars))

    # --- one dimension at a time ---

    def get(self, dimension: str) -> int:
        """The amount of one dimension, 0 when it is not named."""
        if dimension == CPU:
            return self.milli_cpu
        if dimension == MEMORY:
            return self.memory
        return self.scalars.get(dimension, 0)

    def dimensions(self) -> Iterator[str]:
        """CPU and memory, then every named scalar in the order of names."""
        yield CPU
        yield MEMORY
        yield from sorted(self.scalars)

    def asked(self) -> Iterator[str]:
        """The dimensions of which there is more than nothing, without `pods`."""
        return (name for name in self.dimensions() if name != PODS and self.get(name) > 0)

    def is_empty(self) -> bool:
        """True when nothing is asked for; `pods` does not count."""
        if self.milli_cpu or self.memory:
            return False
        return all(not value or name == PODS for name, value in self.scalars.items())

    def without_pods(self) -> Resources:
        """A copy that does not name `pods`."""
        return Resources(self.milli_cpu, self.memory, {n: v for n, v in self.scalars.items() if n != PODS})

    # --- arithmetic ---

    def add(self, other: Resources) -> None:
        """Add in place."""
        self.milli_cpu += other.milli_cpu
        self.memory += other.memory
        scalars = self.scalars
        for name, value in other.scalars.items():
            scalars[name] = scalars.get(name, 0) + value

    def sub(self, other: Resources) -> None:
        """Take away in place; may go below zero (others bind pods too)."""
        self.milli_cpu -= other.milli_cpu
        self.memory -= other.memory
        scalars = self.scalars
        for name, value in other.scalars.items():
            scalars[name] = scalars.get(name, 0) - value

    def plus(self, other: Resources) -> Resources:
        """The sum, as a new value."""
        result = self.clone()
        result.add(other)
        return result

    def minus(self, other: Resources) -> Resources:
        """The difference, as a new value; may be negative."""
        result = self.clone()
        result.sub(other)
        return result

    def exceeded(self, other: Resources) -> Resources:
        """What is left of this above `other`, never below zero, over the dimensions named here."""
        return Resources(
            max(0, self.milli_cpu - other.milli_cpu),
            max(0, self.memory - other.memory),
            {name: max(0, value - other.scalars.get(name, 0)) for name, value in self.scalars.items()},
        )

    def minimum(self, other: Resources) -> Resources:
        """The smaller of each dimension; a scalar that one side does not name is zero there."""
        names = self.scalars.keys() & other.scalars.keys()
        scalars = {name: min(self.scalars[name], other.scalars[name]) for name in names}
        return Resources(min(self.milli_cpu, other.milli_cpu), min(self.memory, other.memory), scalars)

    def capped_by(self, limit: Resources) -> Resources:
        """The smaller of each dimension named here; a scalar that `limit` does not name is unlimited."""
        theirs = limit.scalars
        scalars = {name: min(value, theirs.get(name, value)) for name, value in self.scalars.items()}
        return Resources(min(self.milli_cpu, limit.milli_cpu), min(self.memory, limit.memory), scalars)

    def maximum(self, other: Resources) -> Resources:
        """The larger of each dimension."""
        names = self.scalars.keys() | other.scalars.keys()
        return Resources(
            max(self.milli_cpu, other.milli_cpu),
            max(self.memory, other.memory),
            {name: max(self.scalars.get(name, 0), other.scalars.get(name, 0)) for name in names},
        )

    def scaled(self, numerator: int, denominator: int) -> Resources:
        """Every dimension times a fraction, rounded down."""
        return Resources(
            self.milli_cpu * numerator // denominator,
            self.memory * numerator // denominator,
            {name: value * numerator // denominator for name, value in self.scalars.items()},
        )

    # --- comparisons ---

    def less_equal(self, other: Resources, missing: Missing = Missing.ZERO) -> bool:
        """Whether this fits into `other` in every dimension.

        With ZERO a scalar that `other` does not name is 0 there. With INFINITE it is unlimited, but a scalar that
        only `other` names makes the answer False (Volcano's LessEqual, exactly).
        """
        if self.milli_cpu > other.milli_cpu or self.memory > other.memory:
            return False
        mine, theirs = self.scalars, other.scalars
        if missing is Missing.INFINITE:
            return all(name in mine and mine[name] <= value for name, value in theirs.items())
        for name, value in mine.items():
            if value > theirs.get(name, 0):
                return False
        if min(theirs.values(), default=0) >= 0:
            return True
        return all(value >= 0 or name in mine for name, value in theirs.items())

    def violations(self, limit: Resources, request: Resources) -> list[str]:
        """The dimensions asked for in `request` in which this is more than `limit` (Volcano's third reading).

        Only CPU and memory above zero and named scalars above zero are looked at, never `pods`. A scalar missing
        from `limit` is zero there.
        """
        found: list[str] = []
        if request.milli_cpu > 0 and self.milli_cpu > limit.milli_cpu:
            found.append(CPU)
        if request.memory > 0 and self.memory > limit.memory:
            found.append(MEMORY)
        for name, asked in request.scalars.items():
            if asked <= 0 or name == PODS or name not in self.scalars:
                continue
            if self.scalars[name] > limit.scalars.get(name, 0):
                found.append(name)
        return found


def over_limit(used: Resources, request: Resources, limit: Resources) -> str | None:
    """The first dimension asked for in which `used` and `request` together are more than `limit` (as `violations`)."""
    if request.milli_cpu > 0 and used.milli_cpu + request.milli_cpu > limit.milli_cpu:
        return CPU
    if request.memory > 0 and used.memory + request.memory > limit.memory:
        return MEMORY
    for name, asked in sorted(request.scalars.items()):
        if asked > 0 and name != PODS and used.scalars.get(name, 0) + asked > limit.scalars.get(name, 0):
            return name
    return None


def partly_within(used: Resources, request: Resources, limit: Resources) -> bool:
    """Whether in any dimension asked for `used` and `request` together are no more than `limit`."""
    return any(used.get(name) + request.get(name) <= limit.get(name) for name in request.asked())


def total(parts: Iterable[Resources]) -> Resources:
    """The sum of many."""
    result = Resources()
    for part in parts:
        result.add(part)
    return result


def share(part: int, whole: int) -> float:
    """`part` of `whole`: 0 of nothing is 0, something of nothing is 1."""
    if whole <= 0:
        return 1.0 if part > 0 else 0.0
    return part / whole


def dominant_share(allocated: Resources, whole: Resources) -> float:
    """The largest share that `allocated` is of `whole`, over the dimensions of `whole`."""
    largest = max(share(allocated.milli_cpu, whole.milli_cpu), share(allocated.memory, whole.memory))
    for name, value in whole.scalars.items():
        part = allocated.scalars.get(name)
        if part:
            largest = max(largest, share(part, value))
    return largest


def format_amount(dimension: str, value: int) -> str:
    """An amount as a Kubernetes quantity: `1500m` CPU, `2Gi` memory, `3` GPUs or pods."""
    if dimension == PODS:
        return str(value)
    if dimension == MEMORY:
        return _format_bytes(value)
    return str(value // 1000) if value % 1000 == 0 else f"{value}m"


def _format_bytes(value: int) -> str:
    for power, suffix in ((6, "Ei"), (5, "Pi"), (4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if value and value % 1024**power == 0:
            return f"{value // 1024**power}{suffix}"
    for power, suffix in ((4, "T"), (3, "G"), (2, "M"), (1, "k")):
        if value and value % 1000**power == 0:
            return f"{value // 1000**power}{suffix}"
    return str(value)
