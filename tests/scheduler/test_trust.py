"""What a tenant may write on pods and PodGroups of his own, and what the scheduler believes of it (P2, P5, P7, P9).

A pod that says it was handed to the default scheduler is in `test_delegation`, a noted place for a companion in
`test_companions`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.scheduler.conf import DEFAULT
from muster.scheduler.reasons import Code
from muster.scheduler.specs import Condition, Phase, PodGroupSpec, PodVerdict, Wait
from muster.testing import (
    Cluster,
    bindings,
    companion,
    evictions,
    gang,
    nodes,
    pod,
    pod_group,
    pods,
    queue,
    resources,
)

LONG_AGO = 1.0
AHEAD = 1e12


def at_work() -> Cluster:
    """A scheduler that has begun: two nodes of 4 CPU, one of them full."""
    made = Cluster.of(nodes("n", 2), pod_group("old", 1), pod("old", "old", cpu=4, node="n-0"))
    made.cycle()
    return made


def test_a_nomination_on_a_pod_that_is_new_keeps_no_node_for_it() -> None:
    made = at_work()
    verdict = PodVerdict("Pending", "", "", "n-1")
    made.add(pod_group("h", 1), pod_group("g", 1))
    made.cycle()
    made.add(pods("h", 1, cpu=4), replace(pod("p", "g", cpu=4), verdict=verdict))
    assert bindings(made.cycle()) == {"h-w-0": "n-1"}
    assert made.cache.nominated == {}


def claiming(phase: Phase) -> PodGroupSpec:
    """A PodGroup without pods, for all that the cluster has, made in this phase."""
    return pod_group("g", 2, min_resources=resources(cpu=8), phase=phase)


@pytest.mark.parametrize("phase", list(Phase))
def test_a_phase_that_a_podgroup_is_made_with_reserves_nothing(phase: Phase) -> None:
    """Only enqueue admits: else each could take the quota of its queue from the others by what he writes."""
    made = at_work()
    made.add(queue("q", capability=resources(cpu=4)))
    made.add(replace(claiming(phase), queue="q"))
    made.cycle()
    assert made.phase("g") is Phase.PENDING
    assert made.cache.queues["q"].own_sums().inqueue.milli_cpu == 0
    made.add(gang("h", 1, queue="q", cpu=4))
    assert bindings(made.cycle()) == {"h-w-0": "n-1"}


def test_a_phase_that_was_there_at_the_start_is_believed() -> None:
    made = Cluster.of(nodes("n", 2), claiming(Phase.INQUEUE))
    made.cycle()
    assert made.phase("g") is Phase.INQUEUE


def test_a_phase_that_is_not_ours_is_corrected_where_it_stands() -> None:
    made = at_work()
    made.add(claiming(Phase.RUNNING))
    assert made.cycle().pod_groups["default/g"].phase is Phase.PENDING


CONDITION = {"conditions": (Condition("Scheduled", status=False, last_transition=LONG_AGO),)}
"""The reason's own time is checked where it is read: `tests/engine/test_notes.py`."""
WAITS = {
    "a condition at the start": (False, CONDITION),
    "a condition": (True, CONDITION),
    "a reason": (True, {"wait": Wait(LONG_AGO, for_room=True)}),
}


@pytest.mark.parametrize(("begun", "noted"), WAITS.values(), ids=WAITS.keys())
def test_nobody_has_waited_since_before_his_podgroup_was_made(begun: bool, noted: dict[str, object]) -> None:
    made = at_work() if begun else Cluster.of(nodes("n", 2), pod_group("old", 1), pod("old", "old", cpu=4, node="n-0"))
    made.add(replace(pod_group("g", 2, creation=made.now - 5), **noted), pods("g", 2, cpu=4))  # type: ignore[arg-type]
    made.cycle()
    assert made.cache.starved == {}
    made.cycle(DEFAULT.starvation_timeout - 5)
    assert list(made.cache.starved) == ["default/g"]


def test_a_minimum_that_is_noted_on_a_new_podgroup_does_not_let_its_gang_run_as_a_fragment() -> None:
    made = at_work()
    made.add(replace(pod_group("g", 2), minimum_met=0), pods("g", 2, cpu=2))
    made.settle(made.cycle())
    made.delete("g-w-0")
    made.cycle()
    assert evictions(made.cycle(DEFAULT.gang_repair_timeout)) == {"g-w-1"}


@pytest.mark.parametrize("since", [LONG_AGO, AHEAD])
def test_a_gang_is_not_broken_because_its_podgroup_says_so(since: float) -> None:
    made = at_work()
    made.add(replace(pod_group("g", 2), broken_since=since), pods("g", 2, cpu=2))
    made.settle(made.cycle())
    assert made.cycle(10 * DEFAULT.gang_repair_timeout).evictions == ()


def test_a_companion_is_charged_as_any_pod() -> None:
    made = at_work()
    made.add(queue("q", capability=resources(cpu=4)))
    made.add(gang("g", 1, queue="q", cpu=1, companions=[companion(cpu=4)]))
    reason = made.cycle().pod_groups["default/g"].reason
    assert reason is not None
    assert reason.code in (Code.QUEUE_QUOTA, Code.LARGER_THAN_QUEUE)
