"""Whatever happens, devices are promised once, and all accounts of them are what the tasks make them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from muster.scheduler.cache import SchedulerCache
from muster.scheduler.constraints import DeviceUse
from muster.scheduler.devices import Device, Reach, SliceSpec
from muster.scheduler.outcome import Outcome
from muster.scheduler.specs import Delegation, TaskSpec, TaskStatus
from muster.testing import Cluster, Spec, configuration, plugin
from muster.testing_devices import DRIVER, Told, claim, gpus, tell
from tests.scheduler.audit import all_tasks, audit
from tests.scheduler.test_properties import decisions, touch_all
from tests.scheduler.worlds import STEPS, History, Step, World, crowded_worlds, worlds

_CLAIMS = [f"c{index}" for index in range(6)]
_COUNTED = plugin("capacity", {"capacity.DynamicResourceAllocationEnable": True})
CONFIGURATIONS = (
    configuration("enqueue, allocate, backfill", ["priority", "gang"], ["predicates", _COUNTED, "nodeorder"]),
    configuration("allocate", ["gang"], ["predicates"]),
    configuration("enqueue, allocate, preempt, reclaim", ["priority", "gang"], ["predicates", _COUNTED]),
)


@st.composite
def claiming(draw: st.DrawFn) -> tuple[World, list[Told]]:
    """A world in which some of our pods claim devices, and share claims now and then."""
    world = draw(worlds(CONFIGURATIONS) | crowded_worlds(CONFIGURATIONS))
    told: list[Told] = [gpus(f"n{index}", draw(st.integers(0, 3))) for index in range(5)]
    nic = Device(DRIVER, "net", "nic", reach=Reach())
    told += [SliceSpec("net", DRIVER, "net", devices=(nic,))] if draw(st.booleans()) else []
    told += [claim(name, draw(st.sampled_from((1, 1, 2)))) for name in _CLAIMS]
    return World([_claim(draw, spec) for spec in world.specs], world.configuration), told


def _claim(draw: st.DrawFn, spec: Spec) -> Spec:
    if not isinstance(spec, TaskSpec) or not spec.ours or spec.node is not None:
        return spec
    names = draw(st.lists(st.sampled_from(_CLAIMS), max_size=2, unique=True))
    if not names:
        return spec
    use = DeviceUse(tuple(sorted(f"default/{name}" for name in names)))
    return replace(spec, scheduling=replace(spec.scheduling, devices=use), delegation=Delegation())


def start(given: tuple[World, list[Told]]) -> Cluster:
    world, told = given
    cluster = world.cluster()
    tell(cluster, *told)
    return cluster


def pin(cluster: Cluster) -> None:
    """The binder's patches are seen."""
    for task in list(cluster.cache.tasks.values()):
        if task.status is TaskStatus.BINDING and task.spec.delegation is not None:
            cluster.cache.set_task(replace(task.spec, delegation=Delegation(task.node or "", cluster.now)))


def allocate(cluster: Cluster) -> None:
    """The default scheduler gives the claims of pods on nodes their devices, any that are free there."""
    devices = cluster.cache.devices
    taken = {each for spec in devices.claims.values() if spec.allocation for each in spec.allocation.devices}
    for task in sorted(cluster.cache.tasks.values(), key=lambda each: each.uid):
        if task.status not in (TaskStatus.RUNNING, TaskStatus.BINDING) or task.shape.devices is None:
            continue
        for key in task.shape.devices.claims:
            spec = devices.claims.get(key)
            if spec is None:
                continue
            free = [f"{task.node}/gpu-{n}" for n in range(3) if (DRIVER, task.node, f"gpu-{n}") not in taken]
            there = {device.name for device in devices.slices[task.node].devices} if task.node in devices.slices else {}
            got = [each for each in free if each.partition("/")[2] in there][: spec.requests[0].alternatives[0].count]
            if spec.allocation is None and len(got) == spec.requests[0].alternatives[0].count:
                made = replace(spec, allocation=claim("x", got=got).allocation)
                devices.set_claim(made)
                taken.update(made.allocation.devices if made.allocation else ())


def audit_devices(cache: SchedulerCache) -> None:
    audit(cache)
    users: defaultdict[str, set[str]] = defaultdict(set)
    claims_on: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for task in all_tasks(cache):
        if task.shape.devices is not None and task.node is not None and not task.status.finished:
            for key in task.shape.devices.claims:
                users[key].add(task.uid)
                claims_on[task.node][key] += 1
    devices = cache.devices
    assert {key: set(found) for key, found in devices._users.items()} == users
    assert devices._claims_on == claims_on
    waiting = {uid for tasks in cache.delegated.values() for uid in tasks}
    binding = {t.uid for t in cache.tasks.values() if t.status is TaskStatus.BINDING and t.spec.delegation is not None}
    assert binding <= waiting
    assert all(cache.tasks[uid].spec.delegation is not None for uid in waiting)


def audit_promises(cache: SchedulerCache) -> None:
    """No more devices are promised than there are that nobody has; a claim is promised on one node."""
    devices = cache.devices
    promised: Counter[str] = Counter()
    shared = any(spec.name == "net" for spec in devices.slices.values())
    for key, users in devices._users.items():
        spec = devices.claims[key]
        places = {cache.tasks[uid].node for uid in users if cache.tasks[uid].status is not TaskStatus.RELEASING}
        if spec.allocation is None and places:
            assert shared or len(places) == 1, key
            promised[min(each for each in places if each)] += spec.requests[0].alternatives[0].count or 0
    for node, count in promised.items():
        there = devices.slices[node].devices if node in devices.slices else ()
        free = sum(not devices._allocated[device.id] for device in there) + shared
        assert count <= free, node


_EVENTS = st.builds(Step, st.sampled_from(("pin", "allocate", "give back", "slice", "forget")), st.integers(0, 30))


def happen(history: History, step: Step) -> Outcome:
    """Let the step happen, then run a cycle."""
    cluster, devices = history.cluster, history.cluster.cache.devices
    name = _CLAIMS[step.pick % len(_CLAIMS)]
    spec = devices.claims.get(f"default/{name}")
    match step.kind:
        case "pin":
            pin(cluster)
        case "allocate":
            allocate(cluster)
        case "give back":
            devices.set_claim(replace(spec, allocation=None) if spec is not None else claim(name))
        case "forget":
            devices.remove_claim(f"default/{name}")
        case "slice":
            devices.set_slice(gpus(f"n{step.pick % 5}", step.pick % 4))
        case _:
            return history.play(step)
    return cluster.cycle()


@given(claiming(), st.lists(STEPS | _EVENTS, max_size=12))
def test_accounts_of_devices_are_what_the_tasks_make_them(given: tuple[World, list[Told]], steps: list[Step]) -> None:
    history = History(start(given))
    history.cluster.cycle()
    for step in steps:
        audit_devices(history.cluster.cache)
        happen(history, step)
    audit_devices(history.cluster.cache)


@given(claiming(), st.lists(STEPS | _EVENTS, max_size=10))
def test_parking_changes_no_decision_about_devices(given: tuple[World, list[Told]], steps: list[Step]) -> None:
    parked, eager = History(start(given)), History(start(given))
    assert decisions(parked, parked.cluster.cycle()) == decisions(eager, eager.cluster.cycle(), eager=True)
    for step in steps:
        touch_all(eager)
        assert decisions(parked, happen(parked, step)) == decisions(eager, happen(eager, step), eager=True)


@given(claiming())
def test_no_device_is_promised_twice(given: tuple[World, list[Told]]) -> None:
    cluster = start(given)
    for _ in range(4):
        cluster.cycle()
        audit_promises(cluster.cache)
        pin(cluster)
        audit_promises(cluster.cache)


@given(claiming(), st.lists(STEPS | _EVENTS, max_size=6), st.randoms(use_true_random=False))
def test_a_decision_about_devices_does_not_depend_on_the_order_of_events(
    given: tuple[World, list[Told]], steps: list[Step], shuffler: random.Random
) -> None:
    world, told = given
    order, other_told = list(range(len(world.specs))), list(told)
    shuffler.shuffle(order)
    shuffler.shuffle(other_told)
    one, other = start(given), world.cluster(order)
    tell(other, *other_told)
    histories = History(one), History(other)
    assert one.cycle() == other.cycle()
    for step in steps:
        assert happen(histories[0], step) == happen(histories[1], step)
