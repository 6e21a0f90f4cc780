"""Pods that claim devices (DRA): where those are free, what is counted, and what the gang says when they are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.conf import SchedulerConfiguration, load_configuration
from muster.scheduler.constraints import DeviceUse, PodConstraints, SelectorTerm
from muster.scheduler.device_book import ELSEWHERE
from muster.scheduler.devices import Device, DeviceClassSpec, Reach, SliceSpec
from muster.scheduler.node import NodeInfo
from muster.scheduler.outcome import Outcome
from muster.scheduler.reasons import Code, Reason, describe
from muster.scheduler.selectors import Operator, Requirement
from muster.scheduler.specs import Delegation, PodGroupSpec, PriorityClassSpec, TaskSpec, TaskStatus
from muster.testing import Cluster, Spec, bindings, evictions, gang, node, nodes, pod, pod_group, resources
from muster.testing_devices import CLASS, DRIVER, Told, alternatives, ask, claim, gpus, tell, user


def cluster(told: list[Told], *specs: Spec | list[Spec]) -> Cluster:
    made = Cluster.of(nodes("n", 2), *specs)
    tell(made, *told)
    return made


def reason(outcome: Outcome, group: str = "default/g") -> Reason:
    found = outcome.pod_groups[group].reason
    assert found is not None
    return found


def one(*claims: str) -> list[Spec]:
    return [pod_group("g", 1), user("p", "g", *claims)]


ON_BOTH: list[Told] = [gpus("n-0", 1), gpus("n-1", 2)]
SHARED = SliceSpec("net", DRIVER, "net", devices=(Device(DRIVER, "net", "nic-0"),))
RACK = Reach(terms=(SelectorTerm((Requirement("rack", Operator.IN, ("b",)),)),))


@pytest.mark.parametrize(
    ("told", "where"),
    [
        pytest.param([*ON_BOTH, claim("c", 2)], {"n-1"}, id="enough of them"),
        pytest.param([*ON_BOTH, claim("c", 3)], set(), id="never enough"),
        pytest.param([*ON_BOTH, claim("c", 1, 1)], {"n-1"}, id="two requests"),
        pytest.param([gpus("n-1", 1), claim("c")], {"n-1"}, id="on one node only"),
        pytest.param([*ON_BOTH, claim("o", got=["n-1/gpu-0"]), claim("c", 2)], set(), id="one is allocated"),
        pytest.param([*ON_BOTH, claim("c", ask(None))], {"n-0", "n-1"}, id="all of them"),
        pytest.param([*ON_BOTH, claim("o", got=["n-1/gpu-0"]), claim("c", ask(None))], {"n-0"}, id="all, one taken"),
        pytest.param([claim("c", ask(None)), gpus("n-1", 1)], {"n-1"}, id="all of none is not enough"),
        pytest.param([*ON_BOTH, claim("c", got=["n-1/gpu-1"])], {"n-1"}, id="its own allocation"),
        pytest.param([*ON_BOTH, claim("c", got=["n-1/gpu-1"], reach=Reach())], {"n-0", "n-1"}, id="usable anywhere"),
        pytest.param([*ON_BOTH, alternatives("c", ask(3), ask(2))], {"n-1"}, id="the second alternative"),
        pytest.param([*ON_BOTH, claim("c", ask(5, admin=True))], {"n-0", "n-1"}, id="admin access takes nothing"),
        pytest.param([SHARED, claim("c")], {"n-0", "n-1"}, id="a device of all nodes"),
        pytest.param([gpus("n-0", 1, reach=Reach(terms=())), claim("c")], set(), id="a device of no node"),
    ],
)
def test_a_pod_goes_where_its_claims_can_be_met(told: list[Told], where: set[str]) -> None:
    found = set()
    for name in ("n-0", "n-1"):  # one node at a time, for scores say nothing of devices
        made = Cluster.of(node(name), one("c"))
        tell(made, *told)
        found |= set(bindings(made.cycle()).values())
    assert found == where


def test_devices_of_a_rack_are_for_its_nodes() -> None:
    made = Cluster.of(node("n-0", labels={"rack": "a"}), node("n-1", labels={"rack": "b"}), one("c"))
    tell(made, gpus("rack-b", 1, reach=RACK), claim("c"))
    assert bindings(made.cycle()) == {"p": "n-1"}


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old = replace(gpus("n-0", 4), name="old")
    made = cluster([old, replace(gpus("n-0", 1), generation=2), claim("c", 2)], one("c"))
    assert made.cycle().bindings == ()


def test_what_selects_devices_is_asked() -> None:
    wanted = ask(1, "the fast ones")
    made = cluster([gpus("n-0", 1, model="slow"), gpus("n-1", 1, model="fast"), claim("c", wanted)], one("c"))
    asked: list[str] = []

    def selects(expression: str, device: Device) -> bool:
        asked.append(device.pool)
        return expression == "the fast ones" and device.attributes[DRIVER, "model"] == "fast"

    made.cache.devices.selects = selects
    assert bindings(made.cycle()) == {"p": "n-1"}
    assert sorted(asked) == ["n-0", "n-1"], "once for each device"


def test_the_selectors_of_the_class_hold_too() -> None:
    made = cluster([*ON_BOTH, claim("c")], one("c"))
    made.cache.devices.set_class(DeviceClassSpec(CLASS, ("none",)))
    made.cache.devices.selects = lambda expression, _: expression != "none"
    assert not made.cycle().bindings


def test_a_picky_request_gets_the_device_that_an_easy_one_would_have_taken() -> None:
    mixed = replace(gpus("n-0", 2), devices=(*gpus("n-0", 1).devices, Device(DRIVER, "n-0", "h", reach=Reach("n-0"))))
    made = cluster([mixed, claim("c", ask(1), ask(1, "gpu-0 only"))], one("c"))
    made.cache.devices.selects = lambda _, device: device.name == "gpu-0"
    assert bindings(made.cycle()) == {"p": "n-0"}


def members(count: int) -> list[Spec]:
    return [pod_group("g", count), *(user(f"p{index}", "g", f"c{index}") for index in range(count))]


def claims(count: int, each: int = 1) -> list[Told]:
    return [claim(f"c{index}", each) for index in range(count)]


def test_a_gang_with_a_device_for_each_is_bound_whole_and_by_the_default_scheduler() -> None:
    outcome = cluster([gpus("n-0", 1), gpus("n-1", 1), *claims(2)], members(2)).cycle()
    assert set(bindings(outcome).values()) == {"n-0", "n-1"}
    assert all(each.delegate for each in outcome.bindings)


def test_a_gang_that_needs_more_devices_than_there_are_says_of_which_and_how_many() -> None:
    outcome = cluster([gpus("n-0", 1), gpus("n-1", 1), *claims(3)], members(3)).cycle()
    assert outcome.bindings == ()
    found = reason(outcome)
    assert (found.code, found.resource) == (Code.NOT_ENOUGH_NODES, f"deviceclass/{CLASS}")
    assert (found.have, found.need, found.requested, found.free, found.limit) == (2, 3, 1000, 0, 1000)
    assert describe(found) == (
        f"2 of 3 members have a place; p2 needs deviceclass/{CLASS} 1: 0/2 nodes are available: "
        f"2 node(s) had not enough devices of class {CLASS} (1 asked, 0 free of 1)"
    )


@pytest.mark.parametrize(("size", "fits"), [(2, True), (3, False)])
def test_what_a_member_is_promised_the_next_one_on_the_node_can_not_have(size: int, *, fits: bool) -> None:
    assert bool(cluster([gpus("n-0", 2), *claims(size)], members(size)).cycle().bindings) is fits


def test_a_promised_device_is_nobody_elses_until_its_claim_is_allocated() -> None:
    made = cluster([gpus("n-0", 1), *claims(2)], members(1))
    assert bindings(made.cycle()) == {"p0": "n-0"}
    made.add(pod_group("h", 1), user("q", "h", "c1"))
    assert made.cycle().bindings == ()
    made.cache.devices.set_claim(claim("c0", got=["n-0/gpu-0"]))
    assert made.cycle().bindings == (), "allocated, and not counted twice"
    tell(made, gpus("n-0", 2))
    assert bindings(made.cycle()) == {"q": "n-0"}


def test_a_gang_that_waits_for_a_device_is_woken_when_one_is_given_back() -> None:
    made = cluster([gpus("n-0", 1), claim("o", got=["n-0/gpu-0"]), *claims(1)], members(1))
    assert made.cycle().bindings == ()
    made.cache.devices.remove_claim("default/o")
    assert bindings(made.cycle()) == {"p0": "n-0"}


def test_a_shared_claim_is_charged_once_and_keeps_its_pods_together() -> None:
    pods = [user(f"p{index}", "g", "c") for index in range(3)]
    outcome = cluster([gpus("n-0", 1), claim("c")], pod_group("g", 3), *pods).cycle()
    assert set(bindings(outcome).values()) == {"n-0"}
    assert len(outcome.bindings) == 3


def test_pods_that_share_a_claim_that_takes_nothing_find_a_place_together() -> None:
    pods = [user(f"p{index}", "g", "c") for index in range(2)]
    outcome = cluster([gpus("n-0", 1), claim("c", ask(1, admin=True))], pod_group("g", 2), *pods).cycle()
    assert len(set(bindings(outcome).values())) == 1


def test_pods_that_share_a_claim_to_a_device_of_all_nodes_may_part() -> None:
    pods = [user(f"p{index}", "g", "c", cpu=3) for index in range(2)]
    assert set(bindings(cluster([SHARED, claim("c")], pod_group("g", 2), *pods).cycle()).values()) == {"n-0", "n-1"}


def test_pods_that_share_a_claim_to_a_nodes_device_may_not_part() -> None:
    pods = [user(f"p{index}", "g", "c", cpu=3) for index in range(2)]
    outcome = cluster([*ON_BOTH, claim("c")], pod_group("g", 2), *pods).cycle()
    assert outcome.bindings == ()
    assert ELSEWHERE in dict(reason(outcome).nodes)


def test_a_device_of_all_nodes_is_promised_once() -> None:
    outcome = cluster([SHARED, *claims(2)], members(2)).cycle()
    assert outcome.bindings == ()


def test_the_device_of_a_pod_that_leaves_is_free_later_not_now() -> None:
    leaving = user("x", "", "o", node="n-0", status=TaskStatus.RELEASING)
    made = cluster([gpus("n-0", 1), claim("o", got=["n-0/gpu-0"]), *claims(1)], leaving, members(1))
    outcome = made.cycle()
    assert outcome.bindings == ()
    assert [each.node for each in outcome.pipelined] == ["n-0"]


HURDLES: dict[str, tuple[list[Told], DeviceUse, str]] = {
    "not made yet": ([], DeviceUse(unmade=("gpu",)), 'no ResourceClaim has been made for "gpu" yet'),
    "not there": ([], DeviceUse(("default/c",)), 'resourceclaim "c" not found'),
    "going": ([replace(claim("c"), leaving=True)], DeviceUse(("default/c",)), 'resourceclaim "c" is being deleted'),
    "class missing": (
        [claim("c", ask(device_class="none"))],
        DeviceUse(("default/c",)),
        'resourceclaim "c" asks for device class "none", which does not exist',
    ),
}


@pytest.mark.parametrize(("told", "use", "text"), HURDLES.values(), ids=HURDLES.keys())
def test_a_pod_whose_claim_is_not_ready_waits_and_says_why(told: list[Told], use: DeviceUse, text: str) -> None:
    member = replace(pod("p", "g", scheduling=PodConstraints(devices=use)), delegation=Delegation())
    made = cluster([gpus("n-0", 1), *told], pod_group("g", 1), member)
    found = reason(made.cycle())
    assert (found.code, found.member, found.detail) == (Code.RESOURCE_CLAIM_NOT_READY, "p", text)
    assert not found.more_nodes_help
    made.cache.devices.set_claim(claim("c"))
    made.add(replace(member, scheduling=PodConstraints(devices=DeviceUse(("default/c",)))))
    assert bindings(made.cycle()) == {"p": "n-0"}


def test_until_devices_are_known_a_pod_that_claims_any_waits() -> None:
    made = Cluster.of(nodes("n", 1), one("c"))
    made.cache.devices.watched = True
    assert reason(made.cycle()).code is Code.RESOURCE_CLAIM_NOT_READY
    tell(made, gpus("n-0", 1), claim("c"))
    assert bindings(made.cycle()) == {"p": "n-0"}


def test_where_nobody_tells_of_devices_claims_are_passed_over() -> None:
    assert bindings(Cluster.of(nodes("n", 1), one("c")).cycle()) == {"p": "n-0"}


@pytest.mark.parametrize("enabled", [True, False])
def test_a_pod_of_our_own_scheduler_that_claims_devices_is_never_bound(*, enabled: bool) -> None:
    member = user("p", "g", "c", delegated=False)
    made = cluster([gpus("n-0", 1), claim("c")], pod_group("g", 1), member)
    made.configuration = switched(on=enabled)
    found = reason(made.cycle())
    assert found.code is Code.NEEDS_DEFAULT_SCHEDULER
    assert "default-scheduler" in describe(found)
    assert "muster.dev/gang" in describe(found)
    assert made.cycle().bindings == ()


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(pod_group("g", 1, queue="none"), id="its queue is missing"),
        pytest.param(pod_group("g", 3), id="members are missing"),
        pytest.param(pod_group("g", 1, min_resources=resources(99)), id="the cluster is too small"),
    ],
)
def test_that_no_scheduler_can_place_a_pod_ranks_before_what_else_keeps_its_gang(group: PodGroupSpec) -> None:
    made = cluster([gpus("n-0", 1), claim("c")], group, user("p", "g", "c", delegated=False))
    found = reason(made.cycle())
    assert (found.code, found.member) == (Code.NEEDS_DEFAULT_SCHEDULER, "p")


def test_nobody_is_evicted_for_a_pod_that_can_never_be_bound() -> None:
    low: list[Spec] = [pod_group("low", 0), pod("low-0", "low", cpu=4, node="n-0")]
    high: list[Spec] = [PriorityClassSpec("high", 9), pod_group("g", 1, priority_class="high")]
    plugins = [{"name": name} for name in ("priority", "gang", "conformance", "predicates")]
    evicting = load_configuration({"actions": "enqueue,allocate,preempt", "tiers": [{"plugins": plugins}]})

    def decided(*others: Spec, delegated: bool) -> Outcome:
        member = user("p", "g", "c", delegated=delegated, cpu=4)
        made = Cluster.of(node("n-0"), *others, *high, member, configuration=evicting)
        tell(made, gpus("n-0", 1), claim("c"))
        return made.cycle()

    assert evictions(decided(*low, delegated=True)) == {"low-0"}
    assert decided(*low, delegated=False).evictions == ()
    assert decided(delegated=False).pipelined == (), "nor is room kept for it"


def switched(*, on: bool) -> SchedulerConfiguration:
    plugin = {"name": "predicates", "arguments": {"predicate.DynamicResourceAllocationEnable": on}}
    return load_configuration({"actions": "allocate", "tiers": [{"plugins": [plugin]}]})


def test_the_rule_can_be_switched_off() -> None:
    made = cluster([claim("c")], one("c"))
    assert made.cycle().bindings == ()
    made.configuration = switched(on=False)
    assert made.cycle().bindings


def test_pods_without_claims_are_not_touched_by_any_of_it() -> None:
    made = cluster([*ON_BOTH], gang("g", 2))
    made.cycle()
    assert all(task.shape.plain for task in made.cache.tasks.values())


def test_what_is_undone_gives_its_devices_back() -> None:
    made = cluster([gpus("n-0", 1), gpus("n-1", 1), *claims(4)], members(3))
    made.cycle()
    assert made.cache.devices._users == {}
    assert made.cache.devices._claims_on == {}


def test_of_members_that_ask_for_different_devices_only_those_are_short_that_find_none() -> None:
    outcome = cluster([gpus("n-0", 2), claim("c0", 3), claim("c1", 1)], members(2)).cycle()
    found = reason(outcome)
    assert (found.member, found.have, found.requested, found.limit) == ("p0", 1, 3000, 2000)
    said = {key: verdict.reason for key, verdict in outcome.pods.items()}
    assert said == {"default/p0": "Unschedulable", "default/p1": ""}


def test_pods_that_ask_for_the_same_are_refused_by_one_look_at_each_node() -> None:
    other: list[Spec] = [pod_group("h", 2), user("q0", "h", "c20"), user("q1", "h", "c21")]
    made = Cluster.of(nodes("n", 20, cpu=20), members(20), other)
    tell(made, *(gpus(f"n-{index}", 0) for index in range(20)), *claims(22))
    book, looks = made.cache.devices, 0
    objection = book.objection

    def counted(use: DeviceUse, node: NodeInfo, *, later: bool = False) -> object:
        nonlocal looks
        looks += 1
        return objection(use, node, later=later)

    book.objection = counted  # type: ignore[assignment,method-assign]
    assert made.cycle().bindings == ()
    assert looks <= 4 * 20, "now, later, and twice for the reason; not so often for each pod, nor for each gang"


@pytest.mark.parametrize(
    ("change", "woken"),
    [
        pytest.param(claim("x", got=["n-1/gpu-0"]), False, id="others get a device"),
        pytest.param(claim("y"), False, id="others ask for one"),
        pytest.param(claim("o"), True, id="others give one back"),
        pytest.param(claim("c0", got=["n-1/gpu-0"]), True, id="it gets its own"),
        pytest.param(gpus("n-1", 3), True, id="there are more"),
        pytest.param(DeviceClassSpec(CLASS, ("other",)), True, id="the class changes"),
    ],
)
def test_a_gang_that_waits_for_devices_is_looked_at_when_that_could_help(change: Told, *, woken: bool) -> None:
    made = cluster([gpus("n-0", 1), claim("x"), claim("o", got=["n-0/gpu-0"]), *claims(1)], members(1))
    assert made.cycle().bindings == ()
    made.cycle()
    assert made.cache.lot.jobs.keys() == {"default/g"}
    tell(made, change)
    assert bool(made.cache.lot.wake(made.cache.relief, lambda _shape, _nodes: False)) is woken


def test_a_gang_that_waits_for_a_device_of_all_nodes_is_woken_by_the_pod_that_gives_it_up_elsewhere() -> None:
    def on(index: int, member: TaskSpec) -> TaskSpec:
        return replace(member, scheduling=replace(member.scheduling, node_selector=(("host", str(index)),)))

    made = Cluster.of(*(node(f"n-{index}", labels={"host": str(index)}) for index in range(2)))
    tell(made, SHARED, *claims(2))
    made.add(pod_group("g", 1), on(0, user("p", "g", "c0")))
    assert bindings(made.cycle()) == {"p": "n-0"}
    made.add(pod_group("h", 1), on(1, user("q", "h", "c1")))
    assert made.cycle().bindings == ()
    made.cycle()
    made.cache.bind_failed("uid-p")
    made.change_pod("p", gated=True)
    assert bindings(made.cycle()) == {"q": "n-1"}
