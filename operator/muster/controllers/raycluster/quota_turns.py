"""When gangs that found no room in their namespace's ResourceQuota try again.

They take turns: each waits longer from try to try, and none exactly as long as another, but the oldest of a namespace
never long, and the others not before it has tried. So two gangs that hold each other up get out of each other's way.
Held in memory: after a restart all try at once, and find their turns again.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from muster.api.raycluster import RayCluster
from muster.controllers.clock import Clock
from muster.ray.cluster_conditions import ReplicaFailure

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
LONGEST_OF_THE_OLDEST = 8.0
_SPREAD = 0.5
_BEHIND_SECONDS = 1.0


@dataclass(slots=True)
class Turn:
    """A gang that waits: until when (Unix seconds), and what its user is told."""

    uid: str
    age: tuple[str, str]
    generation: int | None
    until: float
    failure: ReplicaFailure
    tries: int = 1


class QuotaTurns:
    """The gangs that wait, by namespace and cluster."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._turns: dict[str, dict[str, Turn]] = {}

    def of(self, cluster: RayCluster) -> Turn | None:
        """The cluster's turn; None for one that need not wait, or that asks for something else than it did."""
        meta = cluster.metadata
        turn = self._turns.get(meta.namespace, {}).get(meta.name)
        return turn if turn is not None and (turn.uid, turn.generation) == (meta.uid, meta.generation) else None

    def refused(self, cluster: RayCluster, failure: ReplicaFailure) -> Turn:
        """The quota had no room for the gang: it waits (longer than before)."""
        meta = cluster.metadata
        before = self.of(cluster)
        tries = 1 if before is None else before.tries + 1
        age = (meta.creation_timestamp or "", meta.uid or "")
        turn = Turn(meta.uid or "", age, meta.generation, 0.0, failure, tries)
        turns = self._turns.setdefault(meta.namespace, {})
        turns[meta.name] = turn
        older = [one.until for one in turns.values() if one.age < age]
        longest = LONGEST_SECONDS if older else LONGEST_OF_THE_OLDEST
        pause = min(FIRST_SECONDS * 2.0 ** min(tries - 1, 16), longest)
        until = self._clock.now() + pause * (1 + _SPREAD * self._random.random())
        turn.until = max([until, *(other + _BEHIND_SECONDS for other in older)])
        return turn

    def forget(self, key: str) -> None:
        """The cluster "namespace/name" has its pods, or needs none any more."""
        namespace, _, name = key.partition("/")
        turns = self._turns.get(namespace, {})
        turns.pop(name, None)
        if not turns:
            self._turns.pop(namespace, None)
