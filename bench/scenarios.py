"""What is asked of the schedulers: so many gangs, on such nodes, in one of three ways.

All pods of a scenario are of one size, 1 CPU and 1 GiB, unless it says otherwise; nodes have 4 GiB for each CPU. What
fits is exact: where only half the gangs have room, not one pod more has.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """How the gangs come."""

    DRAIN = "drain"
    """All pods are there before the scheduler's process starts; its start counts."""

    STREAM = "stream"
    """They are created at full speed while the scheduler runs."""

    PACED = "paced"
    """So many gangs a second: what a gang waits for when nothing else holds the scheduler up."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Gangs of `size` pods that arrive at a cluster of `nodes` nodes with `node_cpu` CPU each.

    On each node `running` pods of 1 CPU are bound already, and `parked` gangs of three pods wait that each ask for a
    whole node. With `churn` the gangs are as many as there are at any time, for that many seconds: each ends when it
    has been bound for a second, and another one arrives. `paced` is how many come when they are paced.
    `smallest` is the least factor by which it can be made smaller and still be itself.
    """

    name: str
    title: str
    nodes: int
    gangs: int
    size: int
    modes: tuple[Mode, ...] = (Mode.DRAIN, Mode.STREAM)
    node_cpu: int = 32
    running: int = 0
    parked: int = 0
    churn: float = 0.0
    paced: int = 100
    smallest: float = 0.0

    @property
    def fitting(self) -> int:
        """How many of the gangs have room at the same time."""
        return min(self.gangs, self.nodes * (self.node_cpu - self.running) // self.size)

    @property
    def all_fit(self) -> bool:
        """Whether there is room for everything, so that a client that never looks at room may bind it."""
        return self.fitting == self.gangs and not self.parked

    def scaled(self, factor: float) -> Scenario:
        """The same with `factor` times as many nodes and pods; gangs keep their size until there is but one."""
        factor = max(factor, self.smallest)
        gangs = self.gangs * factor
        return dataclasses.replace(
            self,
            nodes=max(1, math.ceil(self.nodes * factor)),
            gangs=max(1, round(gangs)),
            size=self.size if gangs >= 1 else max(1, round(self.size * gangs)),
            parked=math.ceil(self.parked * factor),
            paced=max(1, round(self.paced * factor)),
            churn=self.churn * min(1.0, factor),
        )

    def in_mode(self, mode: Mode) -> Scenario:
        """The scenario with as many gangs as arrive in this mode."""
        return dataclasses.replace(self, gangs=min(self.gangs, self.paced)) if mode is Mode.PACED else self


_ALL = (Mode.DRAIN, Mode.STREAM, Mode.PACED)

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("100x3", "100 gangs of 3 on 100 nodes", nodes=100, gangs=100, size=3, modes=_ALL),
    Scenario("1000x3", "1,000 gangs of 3 on 1,000 nodes", nodes=1000, gangs=1000, size=3),
    Scenario("10x100", "10 gangs of 100 on 1,000 nodes", nodes=1000, gangs=10, size=100),
    Scenario("500x20", "500 gangs of 20 on 1,000 nodes", nodes=1000, gangs=500, size=20),
    Scenario("1x1000", "1 gang of 1,000 on 1,000 nodes", nodes=1000, gangs=1, size=1000),
    Scenario("10000x1", "10,000 gangs of 1 on 1,000 nodes", nodes=1000, gangs=10000, size=1),
    Scenario(
        "contention",
        "100 gangs of 16 on 100 nodes, half of which fit",
        nodes=100,
        gangs=100,
        size=16,
        node_cpu=8,
        smallest=0.02,
    ),
    Scenario(
        "parked",
        "20 gangs of 3 arrive at 100 full nodes, for which 1,000 gangs wait",
        nodes=100,
        gangs=20,
        size=3,
        running=31,
        parked=1000,
        paced=20,
        modes=_ALL,
        smallest=0.05,
    ),
    Scenario(
        "churn",
        "250 gangs of 3, of which 200 fit, end and are followed by others for 60 s",
        nodes=100,
        gangs=250,
        size=3,
        node_cpu=6,
        churn=60.0,
        modes=(Mode.STREAM,),
        smallest=0.02,
    ),
    Scenario(
        "large",
        "1,000 gangs of 3 on 5,000 nodes with 20,000 pods on them",
        nodes=5000,
        gangs=1000,
        size=3,
        running=4,
        modes=_ALL,
    ),
)
"""All scenarios, in the order in which they are measured."""


def scenario(name: str) -> Scenario:
    """The scenario of this name. Raises ValueError that names those there are."""
    for each in SCENARIOS:
        if each.name == name:
            return each
    raise ValueError(f"{name!r} is no scenario; there are {', '.join(each.name for each in SCENARIOS)}")
