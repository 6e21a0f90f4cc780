"""Builders that make a scheduling case readable in one screen.

    cluster = Cluster.of(nodes("n", 3, cpu=4), queue("ray-batch"), gang("demo", queue="ray-batch", pods=3, cpu=2))
    assert bindings(cluster.cycle()) == {"demo-0": "n-0", "demo-1": "n-1", "demo-2": "n-2"}

CPU is in cores, memory in GiB, times in seconds. Everything is created in the order of mention, one second apart,
unless `creation` says otherwise. Pods and PodGroups live in the namespace `default`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from muster.scheduler.cache import SchedulerCache
from muster.scheduler.conf import DEFAULT, SchedulerConfiguration, load_configuration
from muster.scheduler.constraints import UNCONSTRAINED, PodConstraints, Taint
from muster.scheduler.cycle import run_cycle
from muster.scheduler.extender_client import ExtenderClient
from muster.scheduler.outcome import Outcome
from muster.scheduler.resources import Resources
from muster.scheduler.specs import (
    Companion,
    NodeSpec,
    Phase,
    PodDisruptionBudgetSpec,
    PodGroupSpec,
    PriorityClassSpec,
    QueueSpec,
    QueueState,
    ResourceQuotaSpec,
    TaskSpec,
    TaskStatus,
)

NAMESPACE = "default"
OLD = 100.0
"""How long before it is added (in seconds) the first object of a Cluster was made."""
EPOCH = 1_000_000.0 - OLD
"""When the first object of a Cluster was made, in Unix seconds."""
GIB = 1024**3

Spec = NodeSpec | QueueSpec | PodGroupSpec | TaskSpec | PriorityClassSpec | ResourceQuotaSpec | PodDisruptionBudgetSpec


def resources(cpu: float = 0, memory: float = 0, pods: int | None = None, **scalars: int) -> Resources:
    """Cores, GiB, whole pods, and whole scalars by name (`gpu` is `nvidia.com/gpu`)."""
    amounts = {("nvidia.com/gpu" if name == "gpu" else name): value * 1000 for name, value in scalars.items()}
    if pods is not None:
        amounts["pods"] = pods
    return Resources(round(cpu * 1000), round(memory * GIB), amounts)


def node(
    name: str,
    cpu: float = 4,
    memory: float = 16,
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Taint] = (),
    *,
    unschedulable: bool = False,
    ready: bool = True,
    gpu: int | None = None,
) -> NodeSpec:
    """One node."""
    scalars = {} if gpu is None else {"gpu": gpu}
    allocatable = resources(cpu, memory, pods, **scalars)
    return NodeSpec(name, allocatable, dict(labels or {}), tuple(taints), unschedulable, ready)


def nodes(
    prefix: str, count: int, cpu: float = 4, memory: float = 16, pods: int = 110, gpu: int | None = None
) -> list[Spec]:
    """`prefix-0`, `prefix-1`, …, all alike."""
    return [node(f"{prefix}-{index}", cpu, memory, pods, gpu=gpu) for index in range(count)]


def queue(
    name: str,
    weight: int = 1,
    capability: Resources | None = None,
    guarantee: Resources | None = None,
    *,
    deserved: Resources | None = None,
    parent: str = "",
    reclaimable: bool = True,
    state: QueueState = QueueState.OPEN,
    priority: int = 0,
) -> QueueSpec:
    """One queue."""
    return QueueSpec(
        name,
        weight,
        capability or Resources(),
        guarantee or Resources(),
        deserved or Resources(),
        reclaimable=reclaimable,
        parent=parent,
        state=state,
        priority=priority,
    )


def pod(
    name: str,
    group: str = "",
    cpu: float = 1,
    memory: float = 0,
    *,
    role: str = "",
    priority: int = 1,
    node: str | None = None,
    status: TaskStatus | None = None,
    scheduling: PodConstraints = UNCONSTRAINED,
    labels: Mapping[str, str] | None = None,
    gated: bool = False,
    ours: bool = True,
    queue: str = "",
    creation: float = 0.0,
    **scalars: int,
) -> TaskSpec:
    """One pod; with a node it is Running unless `status` says otherwise."""
    asked = resources(cpu, memory, **scalars)
    return TaskSpec(
        uid=f"uid-{name}",
        namespace=NAMESPACE,
        name=name,
        job=f"{NAMESPACE}/{group}" if group else "",
        role=role,
        request=resources(cpu, memory, 1, **scalars),
        init_request=asked,
        priority=priority,
        creation=creation,
        status=status or (TaskStatus.RUNNING if node else TaskStatus.PENDING),
        node=node,
        scheduling=scheduling,
        labels=dict(labels or {}),
        gated=gated,
        ours=ours,
        queue=queue,
    )


def pods(group: str, count: int, cpu: float = 1, memory: float = 0, first: int = 0, **options: object) -> list[Spec]:
    """`group-w-0`, `group-w-1`, …, all alike; `options` as for `pod`."""
    return [
        pod(f"{group}-w-{index}", group, cpu, memory, **options)  # type: ignore[arg-type]
        for index in range(first, first + count)
    ]


def pod_group(
    name: str,
    min_member: int = 1,
    *,
    min_resources: Resources | None = None,
    roles: Mapping[str, int] | None = None,
    queue: str = "default",
    phase: Phase | None = None,
    priority_class: str = "",
    creation: float = 0.0,
    companions: Iterable[Companion] = (),
    companion_nodes: Mapping[str, str] | None = None,
    broken_since: float | None = None,
    minimum_met: int | None = None,
    running: int | None = None,
) -> PodGroupSpec:
    """One PodGroup."""
    return PodGroupSpec(
        namespace=NAMESPACE,
        name=name,
        uid=f"uid-{name}",
        min_member=min_member,
        min_task_member=dict(roles or {}),
        min_resources=min_resources,
        queue=queue,
        priority_class=priority_class,
        creation=creation,
        phase=phase,
        companions=tuple(companions),
        companion_nodes=dict(companion_nodes or {}),
        broken_since=broken_since,
        minimum_met=minimum_met,
        running=running,
    )


def gang(
    name: str,
    count: int,
    cpu: float = 1,
    memory: float = 0,
    *,
    min_member: int | None = None,
    queue: str = "default",
    priority_class: str = "",
    scheduling: PodConstraints = UNCONSTRAINED,
    labels: Mapping[str, str] | None = None,
    companions: Iterable[Companion] = (),
    **scalars: int,
) -> list[Spec]:
    """A PodGroup with its pods, all alike; minMember and minResources are those of all of them."""
    members = count if min_member is None else min_member
    least = resources(cpu * members, memory * members, **{key: value * members for key, value in scalars.items()})
    group = pod_group(
        name,
        members,
        min_resources=least,
        queue=queue,
        priority_class=priority_class,
        companions=companions,
    )
    return [group, *pods(name, count, cpu, memory, scheduling=scheduling, labels=labels, **scalars)]


def companion(role: str = "submittergroup", cpu: float = 0.05, memory: float = 0) -> Companion:
    """A pod that the gang will need later."""
    return Companion(role, resources(cpu, memory, 1), resources(cpu, memory))


def plugin(name: str, arguments: Mapping[str, object] | None = None, **flags: bool) -> dict[str, object]:
    """A plugin of a tier with its arguments and flags."""
    return {"name": name, **flags, "arguments": dict(arguments or {})}


def configuration(actions: str, *tiers: Iterable[str | Mapping[str, object]]) -> SchedulerConfiguration:
    """A configuration; a plugin is its name, or what `plugin` makes."""
    document = [{"plugins": [{"name": each} if isinstance(each, str) else each for each in tier]} for tier in tiers]
    return load_configuration({"actions": actions, "tiers": document})


def dated(spec: Spec, creation: float) -> Spec:
    """The same object with another creation time, where it has one."""
    if isinstance(spec, (PodGroupSpec, TaskSpec, QueueSpec)):
        return replace(spec, creation=creation)
    return spec


@dataclass
class Cluster:
    """A cache with a clock. Bound pods do not run by themselves: `settle` makes what was decided true."""

    cache: SchedulerCache = field(default_factory=SchedulerCache)
    configuration: SchedulerConfiguration = DEFAULT
    now: float = 1_000_000.0
    extenders: ExtenderClient | None = None
    _made: int = 0

    @classmethod
    def of(cls, *specs: Spec | Iterable[Spec], configuration: SchedulerConfiguration = DEFAULT) -> Cluster:
        """A cluster of these objects."""
        cluster = cls(configuration=configuration)
        cluster.add(*specs)
        return cluster

    def connected(self, extenders: ExtenderClient) -> Cluster:
        """The same cluster, whose scheduler can ask programs outside."""
        self.extenders = extenders
        return self

    def add(self, *specs: Spec | Iterable[Spec]) -> None:
        """Add objects, or replace those of the same name."""
        for spec in specs:
            if isinstance(spec, Spec):
                self._set(spec)
            else:
                self.add(*spec)

    def _set(self, spec: Spec) -> None:
        if isinstance(spec, (PodGroupSpec, TaskSpec, QueueSpec)) and not spec.creation:
            self._made += 1
            spec = dated(spec, self.now - OLD + self._made)
        match spec:
            case NodeSpec():
                self.cache.set_node(spec)
            case QueueSpec():
                self.cache.set_queue(spec)
            case PodGroupSpec():
                self.cache.set_pod_group(spec)
            case TaskSpec():
                self.cache.set_task(spec)
            case PriorityClassSpec():
                self.cache.set_priority_class(spec)
            case PodDisruptionBudgetSpec():
                self.cache.set_disruption_budget(spec)
            case ResourceQuotaSpec():
                self.cache.set_resource_quota(spec)

    def cycle(self, seconds: float = 0.0) -> Outcome:
        """Let time pass, then decide."""
        self.now += seconds
        return run_cycle(self.cache, self.configuration, self.now, self.extenders)

    def settle(self, outcome: Outcome) -> None:
        """Bound pods run, evicted pods are gone."""
        for binding in outcome.bindings:
            spec = self.cache.tasks[binding.task_uid].spec
            self.cache.set_task(replace(spec, status=TaskStatus.RUNNING, node=binding.node))
        for eviction in outcome.evictions:
            self.cache.remove_task(eviction.task_uid)

    def run(self, cycles: int = 10) -> list[Outcome]:
        """Decide and make it true until nothing happens any more."""
        outcomes = []
        for _ in range(cycles):
            outcome = self.cycle()
            outcomes.append(outcome)
            self.settle(outcome)
            if not outcome.bindings and not outcome.evictions and outcome.wake_at != self.now:
                break
        return outcomes

    def delete(self, *names: str) -> None:
        """The pods of these names are gone."""
        for name in names:
            self.cache.remove_task(f"uid-{name}")

    def change_pod(self, name: str, **changes: object) -> None:
        """The pod of this name changes (status, node, …)."""
        spec = self.cache.tasks[f"uid-{name}"].spec
        self.cache.set_task(replace(spec, **changes))  # type: ignore[arg-type]

    def phase(self, group: str) -> Phase:
        """The PodGroup's phase."""
        return self.cache.jobs[f"{NAMESPACE}/{group}"].phase

    def placed(self) -> dict[str, str]:
        """Every pod that has a node, with the node."""
        return {task.spec.name: task.node for task in self.cache.tasks.values() if task.node is not None}


def bindings(outcome: Outcome) -> dict[str, str]:
    """Pod to node."""
    return {each.pod: each.node for each in outcome.bindings}


def evictions(outcome: Outcome) -> set[str]:
    """The evicted pods."""
    return {each.pod for each in outcome.evictions}
