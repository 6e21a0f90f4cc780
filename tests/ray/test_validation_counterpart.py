"""Which part of what a user wrote is at a place of what was made of it."""

from __future__ import annotations

from typing import Any

import pytest

from muster.ray.validation.counterpart import counterpart, joined, steps


@pytest.mark.parametrize(
    ("path", "written", "made", "place", "ours"),
    [
        ("a.b", {"a": {"b": 1}}, {"a": {"b": 1}}, "a.b", ""),
        ("a.b", {"a": {"b": 1}}, {"a": {"b": 2}}, "a.b", ""),
        ("a.b.c", {"a": {}}, {"a": {"b": {"c": 1}}}, "a", "b.c"),
        ("a.b.c", {"a": {}}, {"a": {}}, "a.b.c", ""),
        ("l[1].x", {"l": [{"name": "v"}]}, {"l": [{"name": "u"}, {"name": "v"}]}, "l[0].x", ""),
        ("l[1].x", {"l": [{"name": "v"}]}, {"l": [{"name": "v", "y": 1}, {"name": "v"}]}, "l[0].x", ""),
        ("l[1].name", {"l": [{"name": "v"}]}, {"l": [{"name": "v"}, {"name": "v", "y": 1}]}, "l", "[1].name"),
        ("l[1].x", {"l": [{"p": 1}, {"p": 2}]}, {"l": [{"p": 1}, {"p": 2, "name": "2"}]}, "l[1].x", ""),
        ("l[1]", {"l": ["a"]}, {"l": ["a", "b"]}, "l", "[1]"),
        ("l[0].x", {}, {"l": [{"x": 1}]}, "", "l[0].x"),
        ("m[example.com/a].x", {"m": {"example.com/a": 1}}, {"m": {"example.com/a": 1}}, "m[example.com/a].x", ""),
        ("l.x", {"l": [{"x": 1}]}, {"l": [{"x": 1}]}, "l.x", ""),
    ],
    ids=[
        "the same",
        "changed",
        "added",
        "missing in both",
        "moved",
        "its equal before its name",
        "a second of that name is added",
        "got a name",
        "added to a list",
        "a whole list is added",
        "a key with dots",
        "a path without places in lists",
    ],
)
def test_a_place(path: str, written: Any, made: Any, place: str, ours: str) -> None:
    found, added = counterpart(steps(path), made, written)
    assert (joined(found), joined(added)) == (place, ours)
