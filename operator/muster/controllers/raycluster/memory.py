"""What is remembered about one cluster between two passes. None of it is needed after a restart of the operator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from muster.controllers.clock import Clock
from muster.ray.names import random_suffix

FORGET_SECONDS = 600.0
"""A group without a replacement for this long starts over."""
_FIRST_DELAY = 5.0
_LONGEST_DELAY = 300.0


class IntendedNames:
    """Names of things to be created, kept until the thing is seen.

    A create whose answer got lost is tried again under the same name, so that it can't make a second pod.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names: dict[tuple[str, int, int], str] = {}
        self._places: dict[str, tuple[str, int, int]] = {}

    def name(self, prefix: str, group: str, replica: int, host: int = -1) -> str:
        """The name for this place: `prefix` and a random suffix, the same one until `seen` or `discard`."""
        place = (group, replica, host)
        if place not in self._names:
            name = prefix + random_suffix(self._random)
            self._names[place], self._places[name] = name, place
        return self._names[place]

    def seen(self, names: Iterable[str]) -> None:
        """Things of these names exist: their places will need new names one day."""
        for name in names:
            self.discard(name)

    def discard(self, name: str) -> None:
        """The name is taken by something else, or used up."""
        place = self._places.pop(name, None)
        if place is not None and self._names.get(place) == name:
            del self._names[place]


@dataclass(slots=True)
class _Record:
    replacements: int = 0
    last: float = 0.0


class ReplacementPacing:
    """How fast broken pods are replaced: the first at once, one that breaks again and again ever more slowly.

    A worker whose command fails would otherwise be deleted and created many times a minute.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: dict[str, _Record] = {}

    def replace_at(self, group: str) -> float:
        """The Unix second before which no broken pod of the group is replaced; 0 for at once."""
        record = self._records.get(group)
        if record is None or self._clock.now() - record.last > FORGET_SECONDS:
            return 0.0
        return record.last + min(_FIRST_DELAY * 2.0 ** (record.replacements - 1), _LONGEST_DELAY)

    def replaced(self, group: str) -> None:
        """Broken pods of the group have been deleted (several in one pass count once)."""
        now = self._clock.now()
        record = self._records.setdefault(group, _Record())
        if now - record.last > FORGET_SECONDS:
            record.replacements = 0
        record.replacements = min(record.replacements + 1, 16)
        record.last = now


class ClusterMemory:
    """The memory of one cluster, by the UID that it had."""

    def __init__(self, uid: str, clock: Clock, random: Random) -> None:
        self.uid = uid
        self.names = IntendedNames(random)
        self.pacing = ReplacementPacing(clock)
