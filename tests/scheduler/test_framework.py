"""How the plugins' answers are combined: Volcano's rules, point by point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from muster.scheduler.framework import ExtensionPoints, Framework, Plugin
from muster.scheduler.queue import QueueInfo
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.resources import Resources
from muster.scheduler.session import Session
from muster.testing import EPOCH, Cluster, configuration, gang, nodes
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
