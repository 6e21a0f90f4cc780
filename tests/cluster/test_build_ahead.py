"""What is compiled before tests ask for it."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from tests.cluster import build_ahead
from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError


@pytest.fixture(autouse=True)
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the test process not give way to others for good."""
    monkeypatch.setattr(os, "nice", lambda more: more)


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (None, 0),
        (PrerequisiteError([]), 0),
        (CommandFailedError("go build is broken"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_only_a_build_that_breaks_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, outcome: BaseException | None, status: int
) -> None:
    asked: list[str] = []

    def build(names: Iterable[str]) -> None:
        asked.extend(names)
        if outcome is not None:
            raise outcome

    monkeypatch.setattr(build_ahead, "go_binaries", build)
    assert build_ahead.main() == status
    assert asked == list(build_ahead.PROGRAMS)
