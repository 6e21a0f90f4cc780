"""What the events of a Job say about the pod that it can't make."""

from __future__ import annotations

from typing import Any

import pytest

from muster.controllers.refused_pods import newest_refusal

QUOTA = 'pods "demo-{}" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3'


def event(note: str, last: str = "2026-01-01T00:00:00Z", **more: Any) -> dict[str, Any]:
    return {"note": note, "deprecatedLastTimestamp": last, **more}


def test_no_event_is_no_refusal() -> None:
    assert newest_refusal([], "demo") is None


@pytest.mark.parametrize("before", ["", "Error creating: ", "(combined from similar events): Error creating: "])
def test_the_words_are_the_same_at_each_try(before: str) -> None:
    found = {newest_refusal([event(before + QUOTA.format(suffix))], "demo") for suffix in ("x7k2p", "9tt4w")}
    assert found == {QUOTA.format("…")}


@pytest.mark.parametrize(
    "newer",
    [
        event("now", "2026-01-01T00:00:09Z"),
        {"note": "now", "eventTime": "2026-01-01T00:00:09.123456Z"},
        event("now", series={"lastObservedTime": "2026-01-01T00:00:09.123456Z"}),
    ],
    ids=["as the Job controller writes it", "new form", "a series"],
)
def test_the_newest_event_counts_however_it_is_written(newer: dict[str, Any]) -> None:
    older = event("then", "2026-01-01T00:00:05Z")
    assert newest_refusal([newer, older], "demo") == newest_refusal([older, newer], "demo") == "now"


@pytest.mark.parametrize("odd", [{}, {"note": None}, {"note": "why", "deprecatedLastTimestamp": "nonsense"}])
def test_an_event_of_another_shape_harms_nobody(odd: dict[str, Any]) -> None:
    assert newest_refusal([odd], "demo") in ("", "why")
