"""What annotations say: durations of users, and the wait that we noted ourselves."""

from __future__ import annotations

import pytest

from muster.engine import wire_keys
from muster.engine.notes import stated_duration, stored_wait
from muster.engine.podgroup_patch import wanted_annotations
from muster.kube.objects import ObjectMeta, PodGroup
from muster.scheduler.outcome import PodGroupStatus
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.specs import Phase, Wait

MADE = "2026-01-01T00:00:00Z"
MADE_SECONDS = 1_767_225_600.0


def group(**annotations: str) -> PodGroup:
    return PodGroup(metadata=ObjectMeta(name="g", creation_timestamp=MADE, annotations=annotations))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("1h30m", 5400.0), ("0", 0.0), ("", None), ("soon", None), ("-5s", 0.0)],
)
def test_what_is_no_duration_says_nothing(text: str, seconds: float | None) -> None:
    assert stated_duration(group(**{"x": text}), "x") == seconds


@pytest.mark.parametrize(
    ("code", "for_room"), [(Code.NOT_ENOUGH_NODES, True), (Code.QUEUE_QUOTA, True), (Code.PODS_GATED, False)]
)
def test_the_wait_that_is_written_is_read_again(code: Code, *, for_room: bool) -> None:
    since = MADE_SECONDS + 50
    status = PodGroupStatus(Phase.PENDING, (), 0, 0, 0, reason=Reason(code, since=since, detail="x"))
    note = wanted_annotations(status)[wire_keys.REASON]
    assert note is not None
    assert stored_wait(group(**{wire_keys.REASON: note})) == Wait(since, for_room)


@pytest.mark.parametrize(
    "note", ["", "{", "[]", '{"class": "room"}', '{"class": "bored", "since": "2026-01-01T00:00:00Z"}', '{"class": 3}']
)
def test_a_note_that_is_not_ours_says_nothing(note: str) -> None:
    assert stored_wait(group(**{wire_keys.REASON: note})) is None


def test_nobody_waits_from_before_it_was_made() -> None:
    note = '{"class": "room", "since": "2001-01-01T00:00:00Z"}'
    assert stored_wait(group(**{wire_keys.REASON: note})) == Wait(MADE_SECONDS, for_room=True)
