from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest

from tests.cluster.cache import Cache, default_root, digest
from tests.cluster.progress import Steps


def test_an_entry_is_named_after_its_kind_and_versions(tmp_path: Path) -> None:
    path = Cache(tmp_path).entry("ray-image", "2.60.0", "bookworm", build=lambda folder: None)
    assert path == tmp_path / "ray-image" / "2.60.0-bookworm"


def test_a_second_run_builds_nothing(tmp_path: Path) -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "file").write_text("content")

    first, second = (Cache(tmp_path).entry("thing", "1", build=build) for _ in range(2))
    assert first == second
    assert (second / "file").read_text() == "content"
    assert len(built) == 1


def test_another_version_is_another_entry(tmp_path: Path) -> None:
    paths = {Cache(tmp_path).entry("thing", version, build=lambda folder: None) for version in ("1", "2")}
    assert len(paths) == 2


def test_an_entry_is_not_there_before_it_is_whole(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def build(folder: Path) -> None:
        (folder / "half").touch()
        assert not cache.path("thing", "1").exists()

    assert (cache.entry("thing", "1", build=build) / "half").exists()


def test_a_failed_build_leaves_nothing_and_the_next_one_succeeds(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise ValueError("no space")

    with pytest.raises(ValueError, match="no space"):
        cache.entry("thing", "1", build=fail)
    assert list((tmp_path / "thing").iterdir()) == []
    assert list(cache.entry("thing", "1", build=lambda folder: None).iterdir()) == []


def test_what_a_killed_build_left_is_removed_by_the_next_build_of_the_same_entry_only(tmp_path: Path) -> None:
    left, other = tmp_path / "thing" / ".1.abcdef", tmp_path / "thing" / ".2.abcdef"
    left.mkdir(parents=True)
    other.mkdir()
    Cache(tmp_path).entry("thing", "1", build=lambda folder: None)
    assert not left.exists()
    assert other.exists()


def test_runs_that_want_the_same_entry_at_once_build_it_once(tmp_path: Path) -> None:
    built: list[Path] = []
    everyone_is_here = threading.Barrier(4)

    def want() -> None:
        everyone_is_here.wait(10)
        Cache(tmp_path).entry("thing", "1", build=built.append)

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(built) == 1


class Announced(io.StringIO):
    """A stream that tells when a text comes through it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.seen = text, threading.Event()

    def write(self, printed: str) -> int:
        if self.text in printed:
            self.seen.set()
        return super().write(printed)


def test_a_run_that_waits_for_another_says_so(tmp_path: Path) -> None:
    begun, stream = threading.Event(), Announced("Waiting for another run that holds thing/1")

    def build(folder: Path) -> None:
        begun.set()
        assert stream.seen.wait(10)

    slow = threading.Thread(target=lambda: Cache(tmp_path).entry("thing", "1", build=build))
    slow.start()
    assert begun.wait(10)
    # The builder ends only when the second one has said that it waits: else this test would fail at the deadline.
    Cache(tmp_path, steps=Steps(stream)).entry("thing", "1", build=lambda folder: pytest.fail("built twice"))
    slow.join(10)


def built_at(cache: Cache, kind: str, version: str, seconds: int) -> Path:
    """Return an entry as one of that time."""
    entry = cache.entry(kind, version, build=lambda folder: (folder / "file").touch())
    os.utime(entry, (seconds, seconds))
    return entry


def test_a_new_entry_replaces_all_older_ones_of_its_kind_but_the_newest(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    other_kind = built_at(cache, "other", "0", 1)
    for seconds, version in enumerate(["1", "2", "3", "4"], start=1):
        built_at(cache, "thing", version, seconds)
    assert sorted(path.name for path in (tmp_path / "thing").iterdir()) == ["3", "4"]
    assert other_kind.exists()


def test_an_old_entry_that_somebody_adds_to_stays(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    oldest = built_at(cache, "thing", "1", 1)
    built_at(cache, "thing", "2", 2)
    with cache.lock("thing/1"):
        built_at(cache, "thing", "3", 3)
    assert oldest.exists()
    built_at(cache, "thing", "4", 4)
    assert not oldest.exists()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({"XDG_CACHE_HOME": "/c"}, "/c/muster-cluster"), ({"HOME": "/h"}, "/h/.cache/muster-cluster")],
)
def test_the_root_follows_the_users_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_root() == Path(expected)


def test_a_digest_tells_where_one_part_ends_and_the_next_begins() -> None:
    assert digest("ab", "c") != digest("a", "bc")
