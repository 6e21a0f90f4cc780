"""What was worked out from an object is worked out again when it has changed, and not before."""

from __future__ import annotations

from typing import Any

from muster.api.rayjob import RayJob
from muster.controllers.per_version import PerVersion, stored_version, written_version


def version(version: str, uid: str = "u") -> object:
    return stored_version({"metadata": {"uid": uid, "resourceVersion": version}})


def job(**changed: Any) -> object:
    meta = {"name": "demo", "uid": "u", "resourceVersion": "1", "generation": 1, "labels": {"a": "b"}, **changed}
    return written_version(RayJob.parse({"metadata": meta, "spec": {}}).metadata)


class Work:
    """Counts how often it is done."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> int:
        self.times += 1
        return self.times


def test_a_version_is_worked_out_once() -> None:
    known, work = PerVersion[int](), Work()
    assert [known.of("a/b", version("1"), work) for _ in range(3)] == [1, 1, 1]
    assert known.of("a/b", version("2"), work) == 2, "another version"
    assert known.of("a/b", version("2", "v"), work) == 3, "another object of the same name"
    assert known.of("a/c", version("2", "v"), work) == 4, "another key"


def test_nothing_and_what_is_forgotten_is_worked_out_again() -> None:
    known, work = PerVersion[int](), Work()
    assert known.of("a/b", version("1"), lambda: None) is None
    assert known.of("a/b", version("1"), work) == 1
    known.forget("a/b")
    assert known.of("a/b", version("1"), work) == 2


def test_what_users_write_is_the_same_whatever_is_written_into_the_status() -> None:
    assert job() == job(resourceVersion="2")
    others: list[dict[str, Any]] = [
        {"uid": "v"},
        {"generation": 2},
        {"labels": {"a": "c"}},
        {"annotations": {"a": "b"}},
    ]
    assert all(job() != job(**other) for other in others)
