"""Who waits for whom, and who loses what, when events come faster than they are posted."""

from __future__ import annotations

from datetime import UTC, datetime

from muster.kube.event_lanes import EventLanes
from muster.kube.news import EventType, News, ObjectReference

AT = datetime(2026, 1, 1, tzinfo=UTC)


def news(message: str, *, namespace: str = "a", kind: EventType = "Normal", reason: str = "Created") -> News:
    return News(ObjectReference("v1", "Pod", namespace, "p", "u"), kind, reason, message, "Act")


def dropped(lanes: EventLanes, *some: News) -> list[str]:
    return [lost.message for each in some if (lost := lanes.put((each, AT))) is not None]


def taken(lanes: EventLanes) -> list[str]:
    return [lanes.take()[0].message for _ in range(len(lanes))]


def test_lanes_take_turns_and_each_keeps_its_order() -> None:
    lanes = EventLanes()
    burst = [news(f"a{number}") for number in range(4)]
    others = [news("b0", namespace="b"), news("b1", namespace="b"), news("w0", kind="Warning", reason="Invalid")]
    assert dropped(lanes, *burst, *others) == []
    assert taken(lanes) == ["a0", "b0", "w0", "a1", "b1", "a2", "a3"]
    assert not lanes


def test_the_longest_lane_loses_its_latest() -> None:
    lanes = EventLanes(most=4)
    burst = [news(f"a{number}") for number in range(5)]
    warning = news("w0", namespace="b", kind="Warning", reason="Invalid")
    assert dropped(lanes, *burst, warning, news("b0", namespace="b")) == ["a4", "a3", "a2"]
    assert taken(lanes) == ["a0", "w0", "b0", "a1"]


def test_among_lanes_of_one_length_a_normal_one_loses() -> None:
    lanes = EventLanes(most=3)
    warnings = [news(f"w{number}", kind="Warning", reason=f"Reason{number}") for number in range(3)]
    assert dropped(lanes, warnings[0], news("n0"), warnings[1], warnings[2]) == ["n0"]


def test_among_lanes_of_one_length_the_one_that_has_grown_last_loses() -> None:
    lanes = EventLanes(most=3)
    namespaces = [news(each, namespace=each) for each in "abcde"]
    assert dropped(lanes, *namespaces) == ["d", "e"]
    assert taken(lanes) == ["a", "b", "c"]
    assert dropped(lanes, *namespaces[2::-1], news("a1", namespace="a"), news("c1", namespace="c")) == ["a1", "c1"]
    assert taken(lanes) == ["c", "b", "a"]
