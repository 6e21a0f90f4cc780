"""How the scheduler's time and memory grow with the cluster, as two tables.

    python -m bench.scheduler_growth [NODES ...]

Without arguments for 100, 1,000, 5,000 and 10,000 nodes. One process, one core, processor time; memory is what Python
has allocated for the model, by `tracemalloc`. Asserts nothing.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable

from bench.scheduler_cycle import CONSTRAINTS, add_gang, arrival, drain, evict, fill_nodes
from muster.scheduler.cache import SchedulerCache
from muster.scheduler.conf import DEFAULT
from muster.scheduler.cycle import run_cycle

SIZES = (100, 1_000, 5_000, 10_000)

Scenario = Callable[[], tuple[float, int]]


def scenarios(nodes: int) -> dict[str, Scenario]:
    """The same questions to a cluster of this size."""
    return {
        "200 gangs of 3": drain(nodes, 200, 3),
        "200 gangs of 3, none fits": drain(nodes, 200, 3, cpu=200_000),
        "a gang arrives": arrival(nodes, nodes * 10, 1_000),
        "preempt 10 of 10": evict("preempt", nodes, 10),
        "reclaim 10 of 10": evict("reclaim", nodes, 10),
    }


def print_times(sizes: list[int]) -> None:
    """Milliseconds of one cycle; `a gang arrives` has ten running pods a node and 1,000 parked gangs."""
    names = list(scenarios(1))
    print("nodes   " + "  ".join(f"{name:>26}" for name in names))
    for nodes in sizes:
        cells = [min(scenario()[0] for _ in range(2)) * 1000 for scenario in scenarios(nodes).values()]
        print(f"{nodes:6}  " + "  ".join(f"{cell:23.1f} ms" for cell in cells))


def allocated(build: Callable[[], object]) -> int:
    """Bytes that are allocated for what `build` returns."""
    gc.collect()
    tracemalloc.start()
    kept = build()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return size


def model(nodes: int, gangs: int) -> SchedulerCache:
    """Nodes, and gangs of 10 that have been placed on them."""
    cache = SchedulerCache()
    fill_nodes(cache, nodes)
    for number in range(gangs):
        add_gang(cache, number, 10, 100 + 10 * (number % 12), CONSTRAINTS[number % len(CONSTRAINTS)])
    run_cycle(cache, DEFAULT, 1.0)
    return cache


def print_memory(sizes: list[int]) -> None:
    """Kilobytes a node of an empty cluster, and a task when each node has ten."""
    print("\nnodes     a node    a task")
    for nodes in sizes:
        empty, full = allocated(lambda: model(nodes, 0)), allocated(lambda: model(nodes, nodes))  # noqa: B023
        print(f"{nodes:6}  {empty / nodes / 1000:5.1f} kB  {(full - empty) / nodes / 10 / 1000:5.1f} kB")


def main(words: list[str]) -> None:
    sizes = [int(word) for word in words] or list(SIZES)
    print_times(sizes)
    print_memory(sizes)


if __name__ == "__main__":
    main(sys.argv[1:])
