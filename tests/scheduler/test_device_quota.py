"""Devices that count against the queues of those who claim them (`capacity`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.reasons import Code
from muster.scheduler.resources import Resources
from muster.scheduler.specs import TaskStatus
from muster.testing import Cluster, Spec, bindings, configuration, nodes, plugin, pod_group, queue, resources
from muster.testing_devices import CLASS, Told, ask, claim, gpus, tell, user

RESOURCE = f"deviceclass/{CLASS}"


def counting(*, on: bool = True, hierarchy: bool = False) -> SchedulerConfiguration:
    capacity = plugin("capacity", {"capacity.DynamicResourceAllocationEnable": on}, enableHierarchy=hierarchy)
    return configuration("enqueue, allocate", ["priority", "gang"], ["predicates", capacity])


def devices(count: int) -> Resources:
    return resources(**{RESOURCE: count})


def cluster(told: list[Told], *specs: Spec | list[Spec], **options: bool) -> Cluster:
    made = Cluster.of(nodes("n", 2), *specs, configuration=counting(**options))
    tell(made, gpus("n-0", 4), gpus("n-1", 4), *told)
    return made


def member(name: str, *claims: str, queue: str = "q") -> list[Spec]:
    return [pod_group(name, 1, queue=queue), user(f"{name}-0", name, *claims)]


def used(made: Cluster, name: str = "q") -> tuple[int, int]:
    """Devices in whole: allocated, and being released."""
    sums = made.cache.queues[name].subtree
    return sums.allocated.get(RESOURCE) // 1000, sums.releasing.get(RESOURCE) // 1000


def test_a_queue_s_cap_on_a_device_class_holds() -> None:
    made = cluster(
        [claim("c", 2), claim("d", 2)], queue("q", capability=devices(3)), member("a", "c"), member("b", "d")
    )
    outcome = made.cycle()
    assert set(bindings(outcome)) == {"a-0"}
    assert used(made) == (2, 0)
    reason = outcome.pod_groups["default/b"].reason
    assert reason is not None
    assert (reason.code, reason.queue, reason.resource) == (Code.QUEUE_QUOTA, "q", RESOURCE)
    assert (reason.requested, reason.used, reason.limit) == (2000, 2000, 3000)
    made.delete("a-0")
    assert set(bindings(made.cycle())) == {"b-0"}


def test_a_gang_that_claims_more_than_the_cap_never_fits() -> None:
    made = cluster([claim("c", 2)], queue("q", capability=devices(1)), member("a", "c"))
    reason = made.cycle().pod_groups["default/a"].reason
    assert reason is not None
    assert (reason.code, reason.resource, reason.limit) == (Code.LARGER_THAN_QUEUE, RESOURCE, 1000)


def test_a_shared_claim_is_charged_once() -> None:
    sharers: list[Spec] = [user(f"s-{index}", "g", "c") for index in range(3)]
    made = cluster([claim("c", 2)], queue("q", capability=devices(2)), pod_group("g", 3, queue="q"), sharers)
    assert len(bindings(made.cycle())) == 3
    assert used(made) == (2, 0)
    made.delete("s-0", "s-1")
    assert used(made) == (2, 0)
    made.delete("s-2")
    assert used(made) == (0, 0)


def test_the_devices_of_a_pod_that_leaves_are_used_until_it_is_gone() -> None:
    made = cluster([claim("c"), claim("d")], queue("q", capability=devices(1)), member("a", "c"), member("b", "d"))
    assert set(bindings(made.cycle())) == {"a-0"}
    made.change_pod("a-0", status=TaskStatus.RELEASING, node="n-0")
    assert used(made) == (0, 1)
    assert made.cycle().bindings == ()
    made.delete("a-0")
    assert set(bindings(made.cycle())) == {"b-0"}


@pytest.mark.parametrize("hierarchy", [False, True])
def test_the_devices_of_a_pod_that_does_not_leave_are_not_promised_to_others(hierarchy: bool) -> None:
    cap, above = (devices(1), "above") if hierarchy else (None, "")
    queues: list[Spec] = [queue("above", capability=cap), queue("p", parent=above)]
    queues.append(queue("q", parent=above, capability=None if hierarchy else devices(1)))
    made = cluster([claim("c"), claim("d")], queues, hierarchy=hierarchy)
    made.add(pod_group("a", 0, queue="p" if hierarchy else "q"))
    made.add(user("a-0", "a", "c", node="n-0", status=TaskStatus.RELEASING))
    made.add(user("a-1", "a", "c", node="n-0", status=TaskStatus.RELEASING), member("b", "d"))
    assert {each.pod for each in made.cycle().pipelined} == {"b-0"}
    assert {each.pod for each in made.cycle(seconds=299).pipelined} == {"b-0"}
    assert made.cycle(seconds=1).pipelined == ()
    made.delete("a-0", "a-1")
    assert set(bindings(made.cycle())) == {"b-0"}


def test_what_is_undone_is_charged_no_more() -> None:
    made = cluster(
        [claim("c0", 4), claim("c1", 4), claim("c2", 1)],
        queue("q"),
        pod_group("g", 3, queue="q"),
        [user(f"g-{index}", "g", f"c{index}") for index in range(3)],
    )
    assert made.cycle().bindings == ()
    assert used(made) == (0, 0)


def test_without_the_flag_nothing_is_counted() -> None:
    made = cluster([claim("c", 4)], queue("q", capability=devices(1)), member("a", "c"), on=False)
    assert set(bindings(made.cycle())) == {"a-0"}
    assert used(made) == (0, 0)


def test_the_flag_counts_what_runs_already_and_uncounts_it() -> None:
    made = cluster([claim("c", 2)], queue("q"), member("a", "c"), on=False)
    made.cycle()
    made.configuration = counting(on=True)
    made.cycle()
    assert used(made) == (2, 0)
    made.configuration = counting(on=False)
    made.cycle()
    assert used(made) == (0, 0)


@pytest.mark.parametrize("count", [2, 3])
def test_a_claim_that_is_read_after_its_pod_or_made_anew_is_counted_as_it_is(count: int) -> None:
    running = user("r", "g", "late", node="n-0")
    made = cluster([claim("late", 9)] if count == 3 else [], queue("q"), pod_group("g", 1, queue="q"), running)
    made.cycle()
    tell(made, claim("late", count))
    assert used(made) == (count, 0)
    made.cache.devices.remove_claim("default/late")
    assert used(made) == (0, 0)


def test_a_queue_that_names_no_class_may_use_what_there_is_but_for_the_guarantees_of_others() -> None:
    made = cluster(
        [claim("c", 3), claim("d", 3)],
        queue("q"),
        queue("other", guarantee=devices(4)),
        member("a", "c"),
        member("b", "d"),
    )
    outcome = made.cycle()
    assert set(bindings(outcome)) == {"a-0"}
    reason = outcome.pod_groups["default/b"].reason
    assert reason is not None
    assert (reason.code, reason.resource, reason.limit) == (Code.QUEUE_QUOTA, RESOURCE, 4000)


def test_a_parent_s_cap_holds_for_what_is_below_it() -> None:
    below = [queue(name, parent="p") for name in ("x", "y")]
    made = cluster(
        [claim("c", 2), claim("d", 2)],
        queue("p", capability=devices(3)),
        *below,
        member("a", "c", queue="x"),
        member("b", "d", queue="y"),
        hierarchy=True,
    )
    outcome = made.cycle()
    assert set(bindings(outcome)) == {"a-0"}
    assert (used(made, "x"), used(made, "p")) == ((2, 0), (2, 0))
    reason = outcome.pod_groups["default/b"].reason
    assert reason is not None
    assert (reason.queue, reason.resource) == ("p", RESOURCE)


def test_a_queue_s_share_is_of_the_devices_that_it_deserves_too() -> None:
    deserved = replace(devices(4), milli_cpu=8000)
    made = cluster([claim("c", 2)], queue("q", deserved=deserved), member("a", "c"))
    status = made.cycle().queues["q"]
    assert status.share == 0.5
    assert status.allocated.get(RESOURCE) == 2000


def test_a_gang_that_moves_to_another_queue_takes_its_devices_along() -> None:
    made = cluster([claim("c", 2)], queue("q"), queue("other"), member("a", "c"))
    made.cycle()
    made.add(pod_group("a", 1, queue="other"))
    made.cycle()
    assert (used(made, "q"), used(made, "other")) == ((0, 0), (2, 0))


def test_admin_access_counts_nothing_and_all_devices_count_as_those_that_were_got() -> None:
    told: list[Told] = [claim("c", ask(2, admin=True), ask(None))]
    made = cluster(told, queue("q"), member("a", "c"))
    made.cycle()
    assert used(made) == (1, 0)
    made.cache.devices.set_claim(replace(claim("c", ask(None), got=[f"n-0/gpu-{index}" for index in range(4)])))
    assert used(made) == (4, 0)
