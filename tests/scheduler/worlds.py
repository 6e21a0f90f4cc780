"""Random clusters, gangs and histories for the properties."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from muster.scheduler.conf import DEFAULT, SchedulerConfiguration, load_configuration
from muster.scheduler.constraints import PodConstraints, Taint, Toleration
from muster.scheduler.outcome import Outcome
from muster.scheduler.resources import Resources
from muster.scheduler.specs import Phase, PodGroupSpec, PriorityClassSpec, QueueSpec, TaskSpec, TaskStatus
from muster.testing import EPOCH, Cluster, Spec, companion, configuration, dated, node, pod, pod_group, queue, resources
from muster.testing_company import constraints, far, near, ports, rather, spread

_TREE = {"name": "capacity", "enableHierarchy": True}
CONFIGURATIONS = (
    DEFAULT,
    configuration("enqueue, allocate, backfill", ["priority", "gang"], ["predicates", "proportion", "nodeorder"]),
    configuration("allocate, backfill", ["gang"], ["predicates"]),
    configuration("enqueue, allocate", ["drf"], ["proportion", "nodeorder"]),
    configuration("enqueue, allocate, backfill", ["priority", "gang"], ["predicates", "capacity"]),
    configuration("allocate", ["gang", {"name": "drf", "enableHierarchy": True}], ["predicates"]),
    configuration("enqueue, allocate", ["gang"], ["predicates", _TREE, "nodeorder"]),
)
_FAIR = ["drf", "predicates", "proportion", "nodeorder"]
EVICTING = (
    configuration("enqueue, allocate, backfill, reclaim, preempt", ["priority", "gang", "conformance"], _FAIR),
    configuration("enqueue, allocate, preempt, reclaim", ["priority"], ["gang", *_FAIR]),
    configuration("allocate, preempt, backfill", ["priority", "gang"], ["predicates"]),
    configuration("preempt, reclaim, allocate", ["drf", "priority"], ["predicates", "proportion"]),
    configuration("enqueue, allocate, gangpreempt, gangreclaim", ["priority", "gang", "conformance"], _FAIR),
    configuration("enqueue, allocate, reclaim, preempt", ["priority", "gang"], ["predicates", _TREE]),
    configuration("allocate, gangreclaim, gangpreempt, reclaim", ["gang"], ["drf", "predicates", "capacity"]),
    load_configuration(
        {
            "actions": "enqueue, allocate, preempt",
            "tiers": [{"plugins": [{"name": name} for name in ("priority", "gang", "predicates", "nodeorder")]}],
            "configurations": [
                {
                    "name": "preempt",
                    "arguments": {"enableTopologyAwarePreemption": True, "minCandidateNodesAbsolute": 3},
                }
            ],
        }
    ),
)
PRIORITIES = {"high": 100, "low": 1}
TAINT = Taint("dedicated", "batch")
CONSTRAINTS = (
    PodConstraints(),
    PodConstraints(node_selector=(("zone", "a"),)),
    PodConstraints(tolerations=(Toleration("dedicated", "Exists"),)),
)
COMPANY = (
    constraints(far("host", app="a")),
    constraints(far("zone", app="b"), rather(3, "host", app="a")),
    constraints(near("zone", app="a")),
    constraints(near("host", app="a"), far("host", app="b")),
    constraints(spread("zone", app="a")),
    constraints(spread("host", 2, app="a"), spread("zone", hard=False, app="b"), node_selector=(("zone", "a"),)),
    constraints(spread("zone", min_domains=2, honor_taints=True, app="b"), rather(-1, "zone", app="b")),
    ports(80),
    replace(ports(80, 443), tolerations=(Toleration("dedicated", "Exists"),)),
)
LABELS: tuple[dict[str, str], ...] = ({}, {"app": "a"}, {"app": "b"})


@st.composite
def node_specs(draw: st.DrawFn, name: str) -> Spec:
    return node(
        name,
        cpu=draw(st.integers(1, 6)),
        memory=draw(st.sampled_from((4, 8))),
        pods=draw(st.sampled_from((2, 5, 110))),
        labels={"zone": draw(st.sampled_from("ab")), "host": name},
        taints=draw(st.sampled_from(((), (), (TAINT,)))),
        unschedulable=draw(st.sampled_from((False, False, False, True))),
    )


@st.composite
def queue_specs(draw: st.DrawFn, name: str, others: list[str]) -> Spec:
    amounts = st.none() | st.builds(lambda cpu: resources(cpu), st.integers(1, 8))
    guarantee = draw(st.none() | st.builds(lambda cpu: resources(cpu), st.integers(1, 3)))
    # Mostly a proper tree; now and then a queue below itself, in a circle, or below nothing.
    parent = draw(st.sampled_from(("", "", *others, *others)))
    parent = draw(st.sampled_from((*[parent] * 9, "nowhere", name)))
    path = ("root", *draw(st.lists(st.sampled_from("xy"), max_size=1)), name)
    return replace(
        _queue(draw, name, amounts, guarantee, parent),
        hierarchy=draw(st.sampled_from(((), path, path))),
        hierarchy_weights=draw(st.sampled_from(((), (1.0, 2.0, 3.0)))),
    )


def _queue(
    draw: st.DrawFn,
    name: str,
    amounts: st.SearchStrategy[Resources | None],
    guarantee: Resources | None,
    parent: str,
) -> QueueSpec:
    return queue(
        name,
        draw(st.integers(1, 3)),
        draw(amounts),
        guarantee,
        deserved=draw(amounts),
        parent=parent,
        priority=draw(st.integers(0, 1)),
    )


@st.composite
def gang_specs(draw: st.DrawFn, name: str, queues: list[str]) -> list[Spec]:
    size = draw(st.integers(1, 4))
    least = draw(st.integers(0, size))
    cpu = draw(st.sampled_from((0, 0.5, 1, 1, 2, 3)))
    wishes = draw(st.sampled_from(CONSTRAINTS + COMPANY))
    labels = draw(st.sampled_from(LABELS))
    members = [
        pod(
            f"{name}-p-{index}",
            name,
            cpu if index else draw(st.sampled_from((cpu, 1))),
            role="head" if index == 0 else "worker",
            scheduling=wishes if index else draw(st.sampled_from((wishes, *COMPANY))),
            labels=labels,
            priority=draw(st.sampled_from((1, 1, 1, 5))),
            gated=draw(st.sampled_from((False,) * 9 + (True,))),
        )
        for index in range(size)
    ]
    runtime = draw(st.sampled_from((None, None, 60.0, 600.0)))
    chosen = draw(st.sampled_from(queues))
    named = draw(st.sampled_from((chosen, "")))
    members = [replace(member, expected_runtime=runtime, queue=named) for member in members]
    group = pod_group(
        name,
        least,
        min_resources=draw(st.sampled_from((None, resources(cpu * least)))),
        roles=draw(st.sampled_from(({}, {"head": 1}))) if least else {},
        queue=chosen,
        companions=draw(st.sampled_from(((), (), (companion(cpu=0.5),)))),
        priority_class=draw(st.sampled_from(("", "", *PRIORITIES))),
    )
    return [group, *members]


def renamed(spec: Spec, old: str, new: str) -> Spec:
    """The same PodGroup or pod under another name."""
    if isinstance(spec, PodGroupSpec):
        return replace(spec, name=new, uid=f"uid-{new}")
    if isinstance(spec, TaskSpec):
        name = spec.name.replace(old, new, 1)
        return replace(spec, name=name, uid=f"uid-{name}", job=f"default/{new}")
    return spec


@dataclass
class World:
    """A cluster's objects, and the configuration to schedule them with."""

    specs: list[Spec]
    configuration: SchedulerConfiguration

    def cluster(self, order: list[int] | None = None) -> Cluster:
        """A fresh cluster, its objects told in this order."""
        specs = [dated(spec, EPOCH + position // 3 + 1) for position, spec in enumerate(self.specs)]
        cluster = Cluster(configuration=self.configuration)
        cluster.add([specs[position] for position in order] if order is not None else specs)
        return cluster


@st.composite
def worlds(draw: st.DrawFn, configurations: tuple[SchedulerConfiguration, ...] = (*CONFIGURATIONS, *EVICTING)) -> World:
    specs: list[Spec] = [draw(node_specs(f"n{index}")) for index in range(draw(st.integers(1, 4)))]
    names = ["default", *[f"q{index}" for index in range(draw(st.integers(0, 4)))]]
    specs += [draw(queue_specs(name, names[1:])) for name in names[1:]]
    specs += [PriorityClassSpec(name, value) for name, value in PRIORITIES.items()]
    for index in range(draw(st.integers(1, 5))):
        made = draw(gang_specs(f"g{index}", names))
        specs += made
        for copy in range(draw(st.sampled_from((0, 0, 2)))):
            specs += [renamed(spec, f"g{index}", f"g{index}c{copy}") for spec in made]
    for index in range(draw(st.integers(0, 2))):
        wishes = draw(st.sampled_from((PodConstraints(), *COMPANY)))
        specs.append(
            pod(
                f"other-{index}",
                cpu=1,
                ours=False,
                node=draw(st.sampled_from(("n0", "n1", "n7"))),
                labels=draw(st.sampled_from(LABELS)),
                scheduling=wishes,
            )
        )
    if draw(st.booleans()):
        specs.append(pod("loner", cpu=1))
    return World(specs, draw(st.sampled_from(configurations)))


@st.composite
def crowded_worlds(draw: st.DrawFn, configurations: tuple[SchedulerConfiguration, ...] = EVICTING) -> World:
    """Nodes full of pods that run, and gangs that want to take their place."""
    names = ["default", "q1", "q2"]
    amounts = st.none() | st.builds(resources, st.integers(1, 5))
    specs: list[Spec] = [
        queue(name, draw(st.integers(1, 3)), draw(st.none() | amounts), deserved=draw(amounts)) for name in names[1:]
    ]
    specs += [PriorityClassSpec(name, value) for name, value in PRIORITIES.items()]
    free = {f"n{index}": draw(st.integers(2, 4)) for index in range(draw(st.integers(1, 3)))}
    specs += [node(name, cpu, labels={"zone": "ab"[cpu % 2], "host": name}) for name, cpu in free.items()]
    company = draw(st.sampled_from(((PodConstraints(),), (PodConstraints(), *COMPANY))))
    if draw(st.sampled_from((False, False, True))):
        specs.append(pod("other", cpu=draw(st.integers(1, 5)), ours=False, node=draw(st.sampled_from(sorted(free)))))
    for index in range(draw(st.integers(1, 4))):
        specs += draw(_tenants(f"r{index}", names, free, company))
    for index in range(draw(st.integers(1, 3))):
        specs += draw(_newcomers(f"w{index}", names, company))
    return World(specs, draw(st.sampled_from(configurations)))


@st.composite
def _newcomers(draw: st.DrawFn, name: str, queues: list[str], company: tuple[PodConstraints, ...]) -> list[Spec]:
    """A gang that waits for room."""
    size, cpu = draw(st.integers(1, 3)), draw(st.sampled_from((1, 1, 2)))
    group = _group(draw, name, draw(st.integers(0, size)), queues, Phase.INQUEUE, ("high", "high", "low", ""))
    labels, wishes = draw(st.sampled_from(LABELS)), draw(st.sampled_from(company))
    members = [
        pod(
            f"{name}-p-{index}",
            name,
            draw(st.sampled_from((cpu, cpu, 1, 2))),
            priority=draw(st.sampled_from((1, 5))),
            labels=labels,
            scheduling=draw(st.sampled_from((wishes, *company))),
        )
        for index in range(size)
    ]
    return [group, *members]


@st.composite
def _tenants(
    draw: st.DrawFn, name: str, queues: list[str], free: dict[str, int], company: tuple[PodConstraints, ...]
) -> list[Spec]:
    """A gang that runs where there is room left."""
    cpu, running = draw(st.sampled_from((1, 1, 2))), []
    labels, wishes = draw(st.sampled_from(LABELS)), draw(st.sampled_from(company))
    for index in range(draw(st.integers(1, 5))):
        there = [each for each, room in sorted(free.items()) if room >= cpu]
        if there:
            chosen = draw(st.sampled_from(there))
            free[chosen] -= cpu
            running.append(pod(f"{name}-p-{index}", name, cpu, node=chosen, labels=labels, scheduling=wishes))
    least = draw(st.integers(0, len(running)))
    return [_group(draw, name, least, queues, Phase.RUNNING, ("low", "low", "high", "")), *running]


def _group(
    draw: st.DrawFn, name: str, least: int, queues: list[str], phase: Phase, classes: tuple[str, ...]
) -> PodGroupSpec:
    chosen = draw(st.sampled_from(queues))
    companions = draw(st.sampled_from(((), (), (), (companion(cpu=0.5),)))) if phase is Phase.INQUEUE else ()
    priority = draw(st.sampled_from(classes))
    return pod_group(name, least, queue=chosen, phase=phase, priority_class=priority, companions=companions)


@dataclass(frozen=True)
class Step:
    """What happens between two cycles. `pick` chooses among the pods there are."""

    kind: str
    pick: int


STEPS = st.builds(
    Step,
    st.sampled_from(
        (
            "confirm",
            "confirm",
            "confirm",
            "run",
            "fail",
            "delete",
            "finish",
            "recreate",
            "leave",
            "time",
            "node",
            "gone",
            "relabel",
            "ungroup",
            "regroup",
        )
    ),
    st.integers(0, 30),
)


@dataclass
class History:
    """Plays steps on a cluster the way an API server and kubelets would."""

    cluster: Cluster
    deleted: list[TaskSpec] = field(default_factory=list)
    ungrouped: list[PodGroupSpec] = field(default_factory=list)
    reborn: int = 0

    def play(self, step: Step) -> Outcome:
        """Let the step happen, then run a cycle."""
        tasks = [self.cluster.cache.tasks[uid] for uid in sorted(self.cluster.cache.tasks)]
        if step.kind == "time":
            return self.cluster.cycle(seconds=step.pick * 40)
        if step.kind == "node":
            self.cluster.add(
                node(
                    f"n{step.pick % 5}",
                    cpu=1 + step.pick % 6,
                    labels={"zone": "ab"[step.pick % 2], "host": f"n{step.pick % 5}"} if step.pick % 7 else {},
                )
            )
        elif step.kind == "gone":
            self.cluster.cache.remove_node(f"n{step.pick % 5}")
        elif step.kind in ("ungroup", "regroup"):
            self._change_group(step.kind, step.pick)
        elif step.kind == "recreate" and self.deleted:
            self.cluster.add(self.deleted.pop(step.pick % len(self.deleted)))
        elif tasks:
            self._happen(step.kind, step.pick, [task.spec for task in tasks])
        return self.cluster.cycle()

    def _happen(self, kind: str, pick: int, specs: list[TaskSpec]) -> None:
        cache = self.cluster.cache
        spec = specs[pick % len(specs)]
        task = cache.tasks[spec.uid]
        if kind == "confirm":
            self.confirm()
        elif kind == "fail":
            cache.bind_failed(spec.uid)
            cache.evict_failed(spec.uid)
        elif kind == "delete":
            cache.remove_task(spec.uid)
            self.deleted.append(replace(spec, status=TaskStatus.PENDING, node=None))
        elif kind == "relabel":
            cache.set_task(replace(spec, labels=LABELS[pick % len(LABELS)]))
        elif task.node is None:
            return
        elif kind == "run":
            cache.set_task(replace(spec, status=TaskStatus.RUNNING, node=task.node, started=self.cluster.now))
        elif kind == "finish":
            cache.set_task(replace(spec, status=TaskStatus.SUCCEEDED, node=task.node))
        elif kind == "leave":
            cache.set_task(replace(spec, status=TaskStatus.RELEASING, node=task.node))

    def _change_group(self, kind: str, pick: int) -> None:
        """A PodGroup is deleted, or made again (as another one), or needs another submitter than before."""
        cache = self.cluster.cache
        groups = {key: job.spec for key, job in cache.jobs.items() if job.spec is not None and not job.synthetic}
        if kind == "regroup" and self.ungrouped:
            spec = self.ungrouped.pop(pick % len(self.ungrouped))
            cache.set_pod_group(replace(spec, uid=f"{spec.uid}-again"))
        elif groups:
            spec = groups[sorted(groups)[pick % len(groups)]]
            if kind == "ungroup":
                cache.remove_pod_group(spec.key)
                self.ungrouped.append(spec)
            else:
                cache.set_pod_group(replace(spec, companions=((), (companion(cpu=1 + pick % 2),))[pick % 3 > 0]))

    def confirm(self, *, victims_leave: bool = True) -> None:
        """The API server shows everything that was decided; victims are gone, or only on their way."""
        cache = self.cluster.cache
        for task in sorted(cache.tasks.values(), key=lambda task: task.uid):
            if task.evicted is not None and not victims_leave:
                cache.set_task(replace(task.spec, status=TaskStatus.RELEASING, node=task.node))
            elif task.evicted is not None:
                self.deleted.append(replace(task.spec, status=TaskStatus.PENDING, node=None))
                cache.remove_task(task.uid)
            elif task.status is TaskStatus.BINDING:
                cache.set_task(replace(task.spec, status=TaskStatus.RUNNING, node=task.node))
