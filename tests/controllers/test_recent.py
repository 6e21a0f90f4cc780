"""A dashboard's answer is good for a while, under the circumstances under which it was given."""

from __future__ import annotations

from muster.controllers.recent import RecentAnswers
from tests.controllers.fake_clock import FakeClock


async def test_an_answer_is_used_again_until_it_is_old() -> None:
    clock = FakeClock()
    answers = RecentAnswers(clock, 3.0)
    assert answers.of("a", "head 1") is None
    answers.keep("a", "head 1", "RUNNING")
    await clock.advance(2.0)
    assert (answers.of("a", "head 1"), answers.rest("a")) == ("RUNNING", 1.0)
    await clock.advance(1.0)
    assert (answers.of("a", "head 1"), answers.rest("a")) == (None, 0.0)


async def test_what_was_said_under_other_circumstances_or_of_others_or_is_forgotten_does_not_count() -> None:
    answers = RecentAnswers(FakeClock(), 3.0)
    answers.keep("a", "head 1", "RUNNING")
    assert answers.of("a", "head 2") is None
    assert answers.of("b", "head 1") is None
    assert answers.of("a", "head 1") == "RUNNING"
    answers.forget("a")
    answers.forget("unknown")
    assert answers.of("a", "head 1") is None
