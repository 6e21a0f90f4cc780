"""What follows from the state of a queue, and what is told of it."""

from __future__ import annotations

import pytest

from muster.controllers.queue import change_of_state, next_state


@pytest.mark.parametrize(
    ("state", "in_use", "expected"),
    [
        (None, False, "Open"),
        ("", True, "Open"),
        ("Open", False, "Open"),
        ("Closing", True, "Closing"),
        ("Closing", False, "Closed"),
        ("Closed", True, "Closed"),
        ("Closed", False, "Closed"),
        ("Unknown", True, "Unknown"),
    ],
)
def test_the_state_of_a_queue_follows_from_the_stored_one_and_its_pod_groups(
    state: str | None, in_use: bool, expected: str
) -> None:
    assert next_state(state, in_use=in_use) == expected


@pytest.mark.parametrize(
    ("before", "stored", "members"),
    [
        (None, None, 0),
        ("", "", 1),
        (None, "Open", 0),
        ("Open", "Open", 3),
        ("Closing", "Closing", 2),
        ("Closed", "Closed", 2),
        ("Unknown", "Unknown", 0),
    ],
)
def test_nothing_is_told_of_a_queue_that_stays_as_it_is(before: str | None, stored: str | None, members: int) -> None:
    assert change_of_state(before, stored, members=members) is None


@pytest.mark.parametrize(
    ("before", "stored", "members", "kind", "reason", "words"),
    [
        ("Open", "Closing", 3, "Normal", "CloseQueue", "from Closed: 3"),
        ("Open", "Closing", 0, "Normal", "CloseQueue", "is closed"),
        ("Closing", "Closing", 0, "Normal", "CloseQueue", "is closed"),
        ("Open", "Closed", 3, "Normal", "CloseQueue", "is closed"),
        ("Closed", "Open", 0, "Normal", "OpenQueue", "is open"),
        ("Unknown", "Open", 0, "Normal", "OpenQueue", "is open"),
        ("Shut", "Shut", 0, "Warning", "UnknownQueueState", 'status.state: "Shut" is none of Open, Closing and Closed'),
    ],
)
def test_a_change_of_a_queues_state_is_told(
    before: str, stored: str, members: int, kind: str, reason: str, words: str
) -> None:
    told = change_of_state(before, stored, members=members)
    assert told is not None
    assert told[:2] == (kind, reason)
    assert words in told[2]
