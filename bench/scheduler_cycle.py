"""How long the scheduler takes to decide, without an API server.

    python -m bench.scheduler_cycle

One process, one core; processor time is counted, so that neighbours do not matter.
Volcano's default plugins, nodes of several sizes with zones and taints. Prints one line a scenario; asserts nothing.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable

from muster.scheduler.cache import SchedulerCache
from muster.scheduler.conf import DEFAULT, load_configuration
from muster.scheduler.constraints import PodConstraints, SelectorTerm, Taint, Toleration
from muster.scheduler.cycle import run_cycle
from muster.scheduler.resources import Resources
from muster.scheduler.selectors import Operator, Requirement
from muster.scheduler.specs import (
    NodeSpec,
    Phase,
    PodGroupSpec,
    PriorityClassSpec,
    QueueSpec,
    TaskSpec,
    TaskStatus,
)

GIB = 1024**3
EVICTING = load_configuration(
    {
        "actions": "enqueue, allocate, backfill, reclaim, preempt",
        "tiers": [{"plugins": [{"name": option.name} for option in tier]} for tier in DEFAULT.tiers],
    }
)


def fill_nodes(cache: SchedulerCache, count: int, seed: int = 1) -> None:
    random_ = random.Random(seed)
    for index in range(count):
        cpu = random_.choice((16, 32, 64, 96))
        zone = f"zone-{index % 3}"
        taints = (Taint("dedicated", "batch"),) if index % 10 == 0 else ()
        labels = {"zone": zone, "kubernetes.io/hostname": f"n{index:05}", "disk": random_.choice(("ssd", "hdd"))}
        allocatable = Resources(cpu * 1000, cpu * 4 * GIB, {"pods": 110})
        cache.set_node(NodeSpec(f"n{index:05}", allocatable, labels, taints))
        _add_daemon(cache, f"n{index:05}")


def _add_daemon(cache: SchedulerCache, node: str) -> None:
    """A pod of a DaemonSet, as every node of a real cluster has some: bound by others, to the node that it names."""
    name = f"daemon-{node}"
    here = SelectorTerm(fields=(Requirement("metadata.name", Operator.IN, (node,)),))
    request = Resources(100, GIB // 8, {"pods": 1})
    cache.set_task(
        TaskSpec(
            name,
            "kube-system",
            name,
            request=request,
            init_request=Resources(100, GIB // 8),
            ours=False,
            status=TaskStatus.RUNNING,
            node=node,
            scheduling=PodConstraints(required=(here,)),
        )
    )


def add_gang(
    cache: SchedulerCache,
    number: int,
    size: int,
    cpu: int,
    scheduling: PodConstraints,
    *,
    queue: str = "default",
    priority_class: str = "",
) -> None:
    name = f"gang-{number:05}"
    request = Resources(cpu, 2 * GIB, {"pods": 1})
    minimum = Resources(cpu * size, 2 * GIB * size)
    cache.set_pod_group(
        PodGroupSpec(
            "ns",
            name,
            f"pg-{number}",
            size,
            min_resources=minimum,
            queue=queue,
            priority_class=priority_class,
            creation=float(number),
        )
    )
    for index in range(size):
        cache.set_task(
            TaskSpec(
                uid=f"{name}-{index}",
                namespace="ns",
                name=f"{name}-worker-{index}",
                job=f"ns/{name}",
                role="worker",
                request=request,
                init_request=request,
                creation=float(number),
                scheduling=scheduling,
            )
        )


CONSTRAINTS = (
    PodConstraints(),
    PodConstraints(node_selector=(("zone", "zone-1"),)),
    PodConstraints(node_selector=(("disk", "ssd"),)),
    PodConstraints(tolerations=(Toleration("dedicated", "Equal", "batch"),)),
)


def drain(nodes: int, gangs: int, size: int, *, shapes: int = 12, cpu: int = 1000) -> Callable[[], tuple[float, int]]:
    """All gangs wait; one cycle places them."""

    def scenario() -> tuple[float, int]:
        cache = SchedulerCache()
        fill_nodes(cache, nodes)
        for number in range(gangs):
            add_gang(cache, number, size, cpu + 10 * (number % shapes), CONSTRAINTS[number % len(CONSTRAINTS)])
        return timed(lambda: len(run_cycle(cache, DEFAULT, 1.0).bindings))

    return scenario


def arrival(nodes: int, running: int, parked: int, *, leaving: bool = False) -> Callable[[], tuple[float, int]]:
    """One gang of 3 arrives while pods run and other gangs are parked, one of them until a pod has left its node."""

    def scenario() -> tuple[float, int]:
        cache = SchedulerCache()
        fill_nodes(cache, nodes)
        small = Resources(1000, 2 * GIB, {"pods": 1})
        for index in range(running):
            node = f"n{index % nodes:05}"
            cache.set_task(
                TaskSpec(
                    f"r{index}",
                    "ns",
                    f"r-{index}",
                    request=small,
                    init_request=small,
                    ours=False,
                    status=TaskStatus.RUNNING,
                    node=node,
                )
            )
        for number in range(parked):
            add_gang(cache, number, 3, 200_000 + number % 50, CONSTRAINTS[number % len(CONSTRAINTS)])
        if leaving:
            large = Resources(150_000, 2 * GIB, {"pods": 1})
            cache.set_node(NodeSpec("large", Resources(150_000, 400 * GIB, {"pods": 110}), {"zone": "zone-9"}))
            cache.set_task(
                TaskSpec(
                    "leaves",
                    "ns",
                    "leaves",
                    request=large,
                    init_request=large,
                    ours=False,
                    status=TaskStatus.RELEASING,
                    node="large",
                )
            )
            add_gang(cache, parked + 3, 1, 150_000, CONSTRAINTS[0])
        run_cycle(cache, DEFAULT, 1.0)
        add_gang(cache, parked + 1, 3, 500, CONSTRAINTS[0])
        run_cycle(cache, DEFAULT, 2.0)
        add_gang(cache, parked + 2, 3, 777, CONSTRAINTS[1])
        return timed(lambda: len(run_cycle(cache, DEFAULT, 3.0).bindings))

    return scenario


def evict(action: str, nodes: int, size: int) -> Callable[[], tuple[float, int]]:
    """A full cluster of 10 pods a node; a gang needs as many of them evicted as it has members."""

    def scenario() -> tuple[float, int]:
        cache = SchedulerCache()
        cache.set_priority_class(PriorityClassSpec("high", 1000))
        small = Resources(1000, 2 * GIB, {"pods": 1})
        taker = "default" if action == "preempt" else "taker"
        cache.set_queue(QueueSpec("taker"))
        for index in range(nodes):
            labels = {"zone": f"zone-{index % 3}", "kubernetes.io/hostname": f"n{index:05}"}
            cache.set_node(NodeSpec(f"n{index:05}", Resources(10_000, 40 * GIB, {"pods": 110}), labels))
        for index in range(nodes * 10):
            group = f"victims-{index // 20}"
            if index % 20 == 0:
                cache.set_pod_group(PodGroupSpec("ns", group, f"pg-{group}", 1, phase=Phase.RUNNING))
            cache.set_task(
                TaskSpec(
                    f"v{index}",
                    "ns",
                    f"{group}-worker-{index}",
                    job=f"ns/{group}",
                    request=small,
                    init_request=small,
                    status=TaskStatus.RUNNING,
                    node=f"n{index % nodes:05}",
                )
            )
        run_cycle(cache, EVICTING, 1.0)
        add_gang(cache, 1, size, 1000, CONSTRAINTS[0], queue=taker, priority_class="high")
        return timed(lambda: len(run_cycle(cache, EVICTING, 2.0).evictions))

    return scenario


def timed(work: Callable[[], int]) -> tuple[float, int]:
    gc.collect()
    gc.disable()
    start = time.process_time()
    bound = work()
    seconds = time.process_time() - start
    gc.enable()
    return seconds, bound


SCENARIOS = {
    "1,000 gangs of 3 on 5,000 nodes": (drain(5000, 1000, 3), 1000),
    "1,000 gangs of 3 on 5,000 nodes, every gang its own shape": (drain(5000, 1000, 3, shapes=1000), 1000),
    "500 gangs of 20 on 1,000 nodes": (drain(1000, 500, 20), 500),
    "1 gang of 1,000 on 1,000 nodes": (drain(1000, 1, 1000), 1),
    "1,000 gangs of 3 that do not fit on 5,000 nodes": (drain(5000, 1000, 3, cpu=200_000), 1000),
    "preempt: 1 gang of 100 on 1,000 nodes full with 10,000 pods": (evict("preempt", 1000, 100), 1),
    "reclaim: 1 gang of 100 on 1,000 nodes full with 10,000 pods": (evict("reclaim", 1000, 100), 1),
    "1 gang of 3 arrives; 50,000 pods run on 5,000 nodes, 1,000 gangs parked": (arrival(5000, 50_000, 1000), 1),
    "1 gang of 3 arrives; the same, and a gang waits for a pod to leave": (
        arrival(5000, 50_000, 1000, leaving=True),
        1,
    ),
}


def main(words: list[str]) -> None:
    for name, (scenario, gangs) in SCENARIOS.items():
        if words and not all(word in name for word in words):
            continue
        seconds, bound = min(scenario() for _ in range(2))
        rate = f"{bound / seconds:8,.0f} pods/s" if bound else ""
        print(f"{name}: {seconds * 1000:8.1f} ms, {seconds / gangs * 1000:6.3f} ms a gang, {bound} bound {rate}")


if __name__ == "__main__":
    main(sys.argv[1:])
