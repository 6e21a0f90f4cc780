"""How the plugins' answers are combined: Volcano's rules, point by point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from muster.scheduler.conf import load_configuration
from muster.scheduler.framework import ExtensionPoints, Framework, Plugin
from muster.scheduler.job import JobInfo
from muster.scheduler.plugins.arguments import number
from muster.scheduler.queue import QueueInfo
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.resources import Resources
from muster.scheduler.session import Session
from muster.scheduler.specs import PriorityClassSpec, TaskStatus
from muster.testing import EPOCH, Cluster, bindings, configuration, gang, nodes, pod
from tests.scheduler.audit import audit

NO = Reason(Code.WAITING_FOR_TURN)
OTHER = Reason(Code.QUEUE_QUOTA)


def saying(point: str, *answers: Any) -> Plugin:
    """A plugin that gives these answers at an extension point."""

    class Saying(Plugin):
        name: ClassVar[str] = "saying"

        def register(self, points: ExtensionPoints) -> None:
            for answer in answers:
                points.add(point, _always(answer))

    return Saying({})


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


def framework(point: str, *tiers: list[Any], flags: dict[str, bool] | None = None) -> Framework:
    return Framework([[(saying(point, answer), flags or {}) for answer in tier] for tier in tiers])


def empty_session(of: Framework) -> Session:
    cluster = Cluster.of(gang("g", 1))
    return Session(cluster.cache, of, cluster.configuration, cluster.now)


def ask(point: str, *tiers: list[Any]) -> Any:
    of = framework(point, *tiers)
    session = empty_session(of)
    return getattr(of, point)(session, session.cache.jobs["default/g"])


@pytest.mark.parametrize(
    ("tiers", "objection"),
    [
        ([], None),
        ([[None, None]], None),
        ([[True]], None),
        ([[NO]], NO),
        ([[True, NO]], NO),
        ([[True], [NO]], None),
        ([[None], [NO]], NO),
        ([[None], [True], [NO]], None),
        ([[NO, OTHER]], NO),
    ],
)
def test_a_vote_is_lost_by_one_rejection_and_won_by_a_tier_that_permits(
    tiers: list[list[Any]], objection: Reason | None
) -> None:
    assert ask("job_enqueueable", *tiers) is objection
    assert ask("job_pipelined", *tiers) is (objection is None)


@pytest.mark.parametrize(
    ("tiers", "starving"),
    [([], False), ([[], [True]], True), ([[True, False], [True]], False), ([[True], [False]], True)],
)
def test_the_first_tier_with_an_opinion_decides_whether_a_job_starves(tiers: list[list[Any]], starving: bool) -> None:
    assert ask("job_starving", *tiers) is starving


@pytest.mark.parametrize(("tiers", "ready"), [([], True), ([[True], [True]], True), ([[True], [False]], False)])
def test_all_must_call_a_job_ready(tiers: list[list[Any]], ready: bool) -> None:
    assert ask("job_ready", *tiers) is ready


@pytest.mark.parametrize(("tiers", "objection"), [([], None), ([[None], [NO]], NO), ([[OTHER], [NO]], OTHER)])
def test_the_first_objection_makes_a_job_invalid(tiers: list[list[Any]], objection: Reason | None) -> None:
    assert ask("job_valid", *tiers) is objection


@pytest.mark.parametrize(("tiers", "overused"), [([], False), ([[False], [True]], True)])
def test_one_plugin_suffices_to_call_a_queue_overused(tiers: list[list[Any]], overused: bool) -> None:
    of = framework("overused", *tiers)
    assert of.overused(empty_session(of), QueueInfo("q")) is overused


def test_every_plugin_must_agree_that_a_queue_gets_more() -> None:
    of = framework("allocatable", [None], [OTHER])
    assert of.allocatable(empty_session(of), QueueInfo("q"), Resources()) is OTHER


def test_the_first_order_that_tells_two_apart_decides_and_age_is_last() -> None:
    of = framework("job_order", [1], [2])
    session = empty_session(of)
    assert of.job_key(session, session.cache.jobs["default/g"]) == (1, 2, (EPOCH + 1, "uid-g", "default/g"))
    queues = framework("queue_order", [0], [-1], [1])
    assert queues.compare_queues(session, QueueInfo("a"), QueueInfo("b")) == -1
    assert Framework([]).compare_queues(session, QueueInfo("a"), QueueInfo("b")) == 0


@pytest.mark.parametrize(
    ("point", "flag"),
    [("job_ready", "enableJobReady"), ("job_enqueueable", "enableJobEnqueued"), ("overused", "enabledOverused")],
)
def test_a_flag_that_is_off_keeps_a_plugin_out(point: str, flag: str) -> None:
    assert getattr(framework(point, [NO]).tiers[0], point)
    assert not getattr(framework(point, [NO], flags={flag: False}).tiers[0], point)


def test_validity_is_asked_whatever_the_flags() -> None:
    assert framework("job_valid", [NO], flags={"enableJobReady": False}).tiers[0].job_valid


class Curfew(Plugin):
    """Lets no gang start before its hour, whatever room there is."""

    name: ClassVar[str] = "curfew"
    arguments: ClassVar = {"until": number}

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._until = float(arguments["until"])

    def register(self, points: ExtensionPoints) -> None:
        points.add("job_valid", self._objection)

    def job_deadline(self, session: Session, job: JobInfo) -> float | None:
        return self._until if session.now < self._until else None

    def _objection(self, session: Session, job: JobInfo) -> Reason | None:
        return Reason(Code.PODS_GATED, detail="the curfew") if session.now < self._until else None


@pytest.mark.parametrize("cpu", [1.0, 0.0], ids=["asks for room", "asks for nothing"])
@pytest.mark.parametrize("actions", ["enqueue, allocate, backfill, preempt", "allocate, backfill"])
def test_a_gang_that_a_plugin_calls_invalid_waits_for_it_and_evicts_nobody(actions: str, cpu: float) -> None:
    cluster = Cluster(now=1_000_000.0)
    conf = {"name": "curfew", "arguments": {"until": cluster.now + 60}}
    tiers = [{"plugins": [conf, {"name": "priority"}, {"name": "gang"}]}, {"plugins": [{"name": "predicates"}]}]
    cluster.configuration = load_configuration({"actions": actions, "tiers": tiers}, {"curfew": lambda: Curfew})
    cluster.add(nodes("n", 1), PriorityClassSpec("high", 9), pod("low", cpu=4, node="n-0", status=TaskStatus.RUNNING))
    cluster.add(gang("g", 1, cpu, priority_class="high"))
    outcomes = cluster.run()
    assert not any(outcome.bindings or outcome.evictions for outcome in outcomes)
    reason = cluster.cache.jobs["default/g"].reason
    assert reason is not None
    assert (reason.code, reason.detail) == (Code.PODS_GATED, "the curfew")
    assert outcomes[-1].wake_at == cluster.now + 60
    cluster.delete("low")
    assert not cluster.cycle().bindings
    assert bindings(cluster.cycle(60)) == {"g-w-0": "n-0"}


def test_admitted_jobs_are_announced_to_every_plugin() -> None:
    heard: list[str] = []

    class Listening(Plugin):
        name: ClassVar[str] = "listening"

        def register(self, points: ExtensionPoints) -> None:
            points.add("job_enqueued", lambda _session, job: heard.append(job.key))

    of = Framework([[(Listening({}), {})], [(Listening({}), {})]])
    session = empty_session(of)
    of.job_enqueued(session, session.cache.jobs["default/g"])
    assert heard == ["default/g", "default/g"]


def test_a_statement_can_take_over_what_another_has_done() -> None:
    cluster = Cluster.of(nodes("n", 1), gang("g", 2), configuration=configuration("allocate", ["gang"]))
    session = empty_session(Framework([]))
    session.cache = cluster.cache
    node = cluster.cache.nodes["n-0"]
    first, second = session.statement(), session.statement()
    first.allocate(cluster.cache.tasks["uid-g-w-0"], node)
    second.allocate(cluster.cache.tasks["uid-g-w-1"], node)
    first.take_over(second)
    assert (len(first), len(second)) == (2, 0)
    audit(cluster.cache)
    first.discard()
    assert node.used == Resources()
