from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.scheduler.conf import build_framework
from muster.scheduler.constraints import PodConstraints
from muster.scheduler.plugins.tdm import TimeDivision, Window, allowance, window
from muster.scheduler.session import Session
from muster.scheduler.specs import DisruptionBudget, Portion, TaskStatus
from muster.testing import Cluster, Spec, bindings, configuration, node, plugin, pod, pod_group

MIDNIGHT = 1_767_225_600.0
HOUR = 3600.0
REVOCABLE = PodConstraints(revocable=True)
NIGHT = {"tdm.revocable-zone.night": "22:00-06:00"}


def tdm(**more: object) -> Any:
    return plugin("tdm", {**NIGHT, **more})


def conf(*tier: Any) -> Any:
    return configuration("enqueue, allocate", ["gang"], ["predicates", *(tier or (tdm(),))])


def zone_node(name: str, zone: str = "night", cpu: float = 4) -> Spec:
    return node(name, cpu=cpu, labels={"volcano.sh/revocable-zone": zone})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00-01:00", (0, 3600)),
        ("0:00-23:59", (0, 86340)),
        ("1:00-0:00", (3600, 0)),
        ("   1:00-0:00    ", (3600, 0)),
        ("23:59-23:59", (86340, 86340)),
    ],
)
def test_a_window_is_two_times_of_the_day(text: str, seconds: tuple[int, int]) -> None:
    assert window(text) == Window(*seconds)


@pytest.mark.parametrize(
    "text", ["00:00_01:00", "0:00", "1:0-0:0", "63:59-23:59", "1:60-2:00", "", 5, None, "1:00-2:00-3:00"]
)
def test_what_is_no_window_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="day"):
        window(text)


@pytest.mark.parametrize(
    ("text", "hour", "is_open"),
    [
        ("08:00-18:00", 7.99, False),
        ("08:00-18:00", 8, True),
        ("08:00-18:00", 18, True),
        ("08:00-18:00", 18.01, False),
        ("22:00-06:00", 23, True),
        ("22:00-06:00", 1, True),
        ("22:00-06:00", 12, False),
        ("00:00-00:00", 12, True),
    ],
)
def test_a_window_is_open_between_its_times_over_midnight_too(text: str, hour: float, is_open: bool) -> None:
    assert window(text).is_open(MIDNIGHT + hour * HOUR) is is_open


def test_the_next_change_is_when_a_window_opens_or_a_second_after_its_end() -> None:
    night = window("22:00-06:00")
    assert night.next_change(MIDNIGHT + 12 * HOUR) == MIDNIGHT + 22 * HOUR
    assert night.next_change(MIDNIGHT + 22 * HOUR) == MIDNIGHT + 30 * HOUR + 1
    assert night.next_change(MIDNIGHT + HOUR) == MIDNIGHT + 6 * HOUR + 1


@pytest.mark.parametrize(
    ("scheduling", "hour", "zone", "expected"),
    [
        pytest.param(REVOCABLE, 23, "night", "b", id="a revocable pod prefers an open zone"),
        pytest.param(REVOCABLE, 12, "night", "a", id="a closed zone takes nobody"),
        pytest.param(PodConstraints(), 23, "night", "a", id="nor an open one who does not bear it"),
        pytest.param(REVOCABLE, 23, "unheard-of", "a", id="a zone that the configuration does not name is closed"),
        pytest.param(PodConstraints(), 12, "", "a", id="a node without a zone is for everybody"),
    ],
)
def test_who_runs_on_revocable_nodes(scheduling: PodConstraints, hour: float, zone: str, expected: str) -> None:
    cluster = Cluster.of(node("a"), zone_node("b", zone), configuration=conf())
    cluster.add(pod_group("g", 1), pod("p", "g", scheduling=scheduling))
    cluster.now = MIDNIGHT + hour * HOUR
    assert bindings(cluster.cycle()) == {"p": expected}


def test_a_gang_that_waits_for_its_zone_is_placed_when_it_opens_although_nothing_happens() -> None:
    cluster = Cluster.of(zone_node("b"), pod_group("g", 1), pod("p", "g", scheduling=REVOCABLE), configuration=conf())
    cluster.now = MIDNIGHT + 12 * HOUR
    outcome = cluster.cycle()
    assert (bindings(outcome), outcome.wake_at) == ({}, MIDNIGHT + 22 * HOUR)
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert reason.nodes == (("node(s) in revocable zone night, which is closed now", 1),)
    cluster.now = MIDNIGHT + 22 * HOUR
    assert bindings(cluster.cycle()) == {"p": "b"}


def budget(least: Portion | None = None, most: Portion | None = None) -> DisruptionBudget:
    return DisruptionBudget(least, most)


@pytest.mark.parametrize(
    ("limits", "statuses", "allowed"),
    [
        pytest.param(None, "RRRRR", 1, id="one without a budget"),
        pytest.param(budget(most=Portion(30, True)), "RRRRR", 2, id="percentages are rounded up"),
        pytest.param(budget(most=Portion(3)), "RRRRR", 3, id="so many may be missing"),
        pytest.param(budget(most=Portion(3)), "RRPPR", 1, id="those that are missing already count"),
        pytest.param(budget(most=Portion(1)), "RRPPR", 0, id="none when too many are missing"),
        pytest.param(budget(most=Portion(3)), "RRRSF", 3, id="those that have finished are not missing"),
        pytest.param(budget(least=Portion(3)), "RRRRR", 2, id="so many must stay"),
        pytest.param(budget(least=Portion(30, True)), "RRRRR", 3, id="a percentage must stay"),
        pytest.param(budget(least=Portion(3)), "RRPPP", 0, id="none when too few are left"),
        pytest.param(budget(Portion(5), Portion(2)), "RRRRR", 2, id="what may be missing goes first"),
    ],
)
def test_a_budget_limits_how_many_go_at_once(limits: DisruptionBudget | None, statuses: str, allowed: int) -> None:
    words = {"R": TaskStatus.RUNNING, "P": TaskStatus.PENDING, "S": TaskStatus.SUCCEEDED, "F": TaskStatus.FAILED}
    cluster = Cluster.of(zone_node("b", cpu=9), replace(pod_group("g", 1), budget=limits))
    for index, letter in enumerate(statuses):
        cluster.add(pod(f"p-{index}", "g", node=None if letter == "P" else "b", status=words[letter]))
    assert allowance(cluster.cache.jobs["default/g"]) == allowed


def stranded(cluster: Cluster, hour: float, session: Session | None = None) -> tuple[list[str], Session]:
    """Who is to leave at that hour, by a plugin that remembers when the session of an earlier hour is given."""
    framework = session.framework if session else build_framework(cluster.configuration)
    opened = Session(cluster.cache, framework, cluster.configuration, MIDNIGHT + hour * HOUR)
    for each in framework.plugins:
        each.on_session_open(opened)
    running = [task for task in cluster.cache.tasks.values() if task.status is TaskStatus.RUNNING]
    return [task.spec.name for task in framework.victim_tasks(opened, running)], opened


def night_shift() -> Cluster:
    cluster = Cluster.of(node("a"), zone_node("b", cpu=9), configuration=conf())
    cluster.add(replace(pod_group("g", 1), budget=budget(most=Portion(2))))
    cluster.add(pod(f"p-{index}", "g", node="b") for index in range(3))
    cluster.add(replace(pod("stays", "g", node="b"), preemptable=False), pod("elsewhere", "g", node="a"))
    return cluster


def test_a_closed_zone_is_cleared_as_budgets_allow() -> None:
    assert stranded(night_shift(), 12)[0] == ["p-0", "p-1"]


def test_an_open_zone_is_left_alone() -> None:
    assert stranded(night_shift(), 23)[0] == []


def test_more_are_evicted_only_after_the_period() -> None:
    cluster = night_shift()
    _, session = stranded(cluster, 12)
    (division,) = [each for each in session.framework.plugins if isinstance(each, TimeDivision)]
    assert division.deadline(session) == MIDNIGHT + 12 * HOUR + 60
    assert stranded(cluster, 12 + 59 / HOUR, session)[0] == []
    assert stranded(cluster, 12 + 60 / HOUR, session)[0] == ["p-0", "p-1"]


@pytest.mark.parametrize(
    ("preemptable", "revocable", "victims"),
    [(False, False, ["elsewhere"]), (True, False, []), (False, True, [])],
)
def test_only_who_may_not_be_evicted_preempts_and_outside_of_zones(
    preemptable: bool, revocable: bool, victims: list[str]
) -> None:
    cluster = night_shift()
    cluster.configuration = configuration("allocate", [tdm()])
    scheduling = PodConstraints(revocable=revocable)
    cluster.add(pod_group("h", 1), replace(pod("new", "h", scheduling=scheduling), preemptable=preemptable))
    _, session = stranded(cluster, 23)
    candidates = [task for task in cluster.cache.tasks.values() if task.status is TaskStatus.RUNNING]
    found = session.framework.preemptable(session, cluster.cache.tasks["uid-new"], candidates)
    assert [task.spec.name for task in found] == victims


def test_jobs_that_may_not_be_preempted_go_first() -> None:
    cluster = Cluster.of(node("a", cpu=1), configuration=conf())
    cluster.add(replace(pod_group("soft", 1), preemptable=True), pod("soft-0", "soft"))
    cluster.add(pod_group("hard", 1), pod("hard-0", "hard"))
    assert bindings(cluster.cycle()) == {"hard-0": "a"}


@pytest.mark.parametrize(
    ("preemptable", "pending", "starving"), [(False, 1, True), (True, 1, False), (False, 0, False)]
)
def test_a_job_that_may_not_be_preempted_starves_while_it_has_pending_pods(
    preemptable: bool, pending: int, starving: bool
) -> None:
    cluster = Cluster.of(node("a"), configuration=configuration("allocate", [tdm()]))
    cluster.add(replace(pod_group("g", 1), preemptable=preemptable), pod("g-0", "g", node="a"))
    cluster.add(pod(f"more-{index}", "g") for index in range(pending))
    session = stranded(cluster, 12)[1]
    assert session.framework.job_starving(session, cluster.cache.jobs["default/g"]) is starving
