"""What is told a second time and what is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from muster.kube.event_memory import EventMemory
from muster.kube.news import News, ObjectReference


class Moments:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def news(message: str, *, uid: str = "u", subject: str = "", change: str = "", reason: str = "Invalid") -> News:
    about = ObjectReference("ray.io/v1", "RayJob", "ns", "demo", uid)
    return News(about, "Warning", reason, message, "Validate", change, subject)


def told(memory: EventMemory, *looks: tuple[News, ...]) -> list[str]:
    return [each.message for look in looks for each in look if memory.learn(each)]


def test_a_fact_that_stands_is_told_once_and_each_change_of_it_again() -> None:
    memory = EventMemory(Moments())
    looks = [(news(message),) for message in ("a", "a", "b", "b", "a", "a")]
    assert told(memory, *looks) == ["a", "b", "a"]


def test_the_same_words_are_new_when_another_change_brought_them() -> None:
    memory = EventMemory(Moments())
    looks = [(news("a", change=change),) for change in "1122"]
    assert told(memory, *looks) == ["a", "a"]


def test_facts_on_several_subjects_stand_side_by_side() -> None:
    memory = EventMemory(Moments())
    look = (news("a", subject="spec.a"), news("b", subject="spec.b"))
    assert told(memory, *[look] * 100) == ["a", "b"]


def test_facts_that_share_a_topic_all_the_same_are_not_told_for_ever() -> None:
    clock = Moments()
    memory = EventMemory(clock)
    look = (news("a"), news("b"))
    assert len(told(memory, *[look] * 1000)) == 2 + 10
    clock.now += timedelta(hours=1)
    assert len(told(memory, *[look] * 1000)) == 10


def test_what_one_object_repeats_costs_no_other() -> None:
    memory = EventMemory(Moments())
    told(memory, *[(news("a", uid="loud"), news("b", uid="loud"))] * 1000)
    assert told(memory, (news("a"),), (news("b"),), (news("a"),)) == ["a", "b", "a"]


def test_what_was_forgotten_is_new() -> None:
    memory = EventMemory(Moments())
    assert told(memory, (news("a"),)) == ["a"]
    memory.forget(news("a"))
    memory.forget(news("never told", uid="nobody"))
    assert told(memory, (news("a"),), (news("a"),)) == ["a"]


def test_the_memory_is_bounded_and_loses_the_oldest_first() -> None:
    memory = EventMemory(Moments())
    for number in range(10_001):
        memory.learn(news("a", uid=f"u{number}"))
    assert len(memory) == 10_000
    assert told(memory, (news("a", uid="u1"),), (news("a", uid="u0"),)) == ["a"]


def test_what_is_remembered_of_one_object_is_bounded_too() -> None:
    memory = EventMemory(Moments())
    for number in range(1000):
        memory.learn(news("a", reason=f"Reason{number}"))
    assert told(memory, (news("a", reason="Reason999"),), (news("a", reason="Reason0"),)) == ["a"]
