"""How much time an extender gets, and when it is asked again."""

from __future__ import annotations

import pytest

from muster.scheduler.plugins.extender.allowance import (
    FAILURES,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    SECONDS_IN_ALL,
    SECONDS_TO_BEGIN,
    Allowance,
    Standing,
)
from muster.scheduler.plugins.extender.retries import Retries

NOW = 1000.0


@pytest.fixture
def allowance() -> Allowance:
    found = Allowance()
    found.begin(NOW)
    return found


def fail(allowance: Allowance, times: int, seconds: float = 0.0) -> None:
    for _ in range(times):
        allowance.failed("a", seconds, "HTTP status 500")


def test_failures_count_only_in_a_row(allowance: Allowance) -> None:
    for _ in range(5):
        fail(allowance, FAILURES - 1)
        allowance.answered("a", 0.0)
    assert allowance.standing("a") is Standing.OPEN
    fail(allowance, FAILURES)
    assert (allowance.standing("a"), allowance.standing()) == (Standing.BROKEN, Standing.BROKEN)
    assert allowance.problem == "HTTP status 500"


def test_the_pause_counts_from_when_it_was_given_up(allowance: Allowance) -> None:
    fail(allowance, FAILURES, seconds=1.0)
    allowance.end()
    assert allowance.next_chance == NOW + max(2 * FAILURES, FAILURES + FIRST_PAUSE)


def test_one_failure_after_a_pause_is_enough_for_a_longer_one_and_an_answer_for_none(allowance: Allowance) -> None:
    fail(allowance, FAILURES)
    for pause in (2, 4, 8, 16, 32, LONGEST_PAUSE, LONGEST_PAUSE):
        allowance.begin(allowance.next_chance)
        assert allowance.standing("a") is Standing.OPEN
        began = allowance.next_chance
        fail(allowance, 1)
        assert allowance.next_chance == began + pause
    allowance.begin(allowance.next_chance)
    allowance.answered("a", 0.0)
    fail(allowance, FAILURES - 1)
    assert allowance.standing("a") is Standing.OPEN


def test_a_gang_that_was_begun_goes_on_when_no_other_may_begin(allowance: Allowance) -> None:
    allowance.answered("a", SECONDS_TO_BEGIN)
    assert allowance.standing("a") is Standing.OPEN
    assert allowance.standing("b") is Standing.BUSY
    assert allowance.standing() is Standing.OPEN


def test_when_all_time_is_used_nobody_is_asked_about(allowance: Allowance) -> None:
    allowance.answered("a", SECONDS_TO_BEGIN - 0.1)
    allowance.answered("b", SECONDS_IN_ALL)
    assert {allowance.standing(each) for each in ("a", "b", "c", None)} == {Standing.BUSY}


def test_a_gang_that_uses_all_time_alone_is_refused_and_no_other(allowance: Allowance) -> None:
    allowance.answered("a", SECONDS_IN_ALL)
    assert (allowance.standing("a"), allowance.standing("b")) == (Standing.ENDLESS, Standing.BUSY)
    allowance.end()
    allowance.begin(allowance.next_chance)
    assert (allowance.standing("a"), allowance.standing("b")) == (Standing.OPEN, Standing.OPEN)


def test_a_cycle_that_took_long_is_followed_by_as_long_a_rest(allowance: Allowance) -> None:
    allowance.answered("a", 3.0)
    allowance.end()
    assert allowance.next_chance == NOW + 6
    allowance.begin(NOW + 5.9)
    assert allowance.standing("a") is Standing.BUSY
    allowance.begin(NOW + 6)
    assert allowance.standing("a") is Standing.OPEN


def test_a_short_cycle_needs_no_rest(allowance: Allowance) -> None:
    allowance.answered("a", 0.1)
    allowance.end()
    allowance.begin(NOW + 0.01)
    assert allowance.standing("a") is Standing.OPEN


def test_a_question_gets_no_more_time_than_there_is(allowance: Allowance) -> None:
    assert allowance.timeout(1.0) == 1.0
    assert allowance.timeout(60.0) == SECONDS_IN_ALL
    allowance.answered("a", SECONDS_IN_ALL - 0.5)
    assert allowance.timeout(1.0) == 0.5
    allowance.answered("a", 1.0)
    assert allowance.timeout(1.0) > 0


def test_one_hanging_answer_that_uses_all_time_is_enough_to_give_it_up(allowance: Allowance) -> None:
    fail(allowance, 1, seconds=SECONDS_IN_ALL)
    assert allowance.standing("b") is Standing.BROKEN


def test_refused_gangs_wait_each_for_itself() -> None:
    retries = Retries()
    retries.refused("a", 0.0)
    retries.refused("a", 1.0)
    retries.refused("b", 1.0)
    assert (retries.at("a"), retries.at("b"), retries.at("c")) == (3.0, 2.0, None)
    retries.forget("a")
    retries.keep({"a"})
    assert (retries.at("a"), retries.at("b")) == (None, None)


def test_a_refusal_before_its_time_changes_nothing() -> None:
    retries = Retries()
    for moment in (0.0, 0.1, 0.9):
        retries.refused("a", moment)
    assert retries.at("a") == 1.0
