"""What was worked out from an object is worked out again when it has changed, and not before."""

from __future__ import annotations

from typing import Any

from muster.controllers.per_version import PerVersion


def raw(version: str, uid: str = "u") -> dict[str, Any]:
    return {"metadata": {"uid": uid, "resourceVersion": version}}


class Work:
    """Counts how often it is done."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> int:
        self.times += 1
        return self.times


def test_a_version_is_worked_out_once() -> None:
    known, work = PerVersion[int](), Work()
    assert [known.of("a/b", raw("1"), work) for _ in range(3)] == [1, 1, 1]
    assert known.of("a/b", raw("2"), work) == 2, "another version"
    assert known.of("a/b", raw("2", "v"), work) == 3, "another object of the same name"
    assert known.of("a/c", raw("2", "v"), work) == 4, "another key"


def test_nothing_and_what_is_forgotten_is_worked_out_again() -> None:
    known, work = PerVersion[int](), Work()
    assert known.of("a/b", raw("1"), lambda: None) is None
    assert known.of("a/b", raw("1"), work) == 1
    known.forget("a/b")
    assert known.of("a/b", raw("1"), work) == 2
