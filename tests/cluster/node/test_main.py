"""`python -m tests.cluster.node supplies`, with a supply that only notes what it is asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cluster.cache import Cache
from tests.cluster.node import __main__ as module
from tests.cluster.node.__main__ import main
from tests.cluster.prerequisites import Missing
from tests.cluster.process import CommandFailedError
from tests.cluster.progress import Steps


class NotingSupply:
    """What `make_supply` returns here."""

    def __init__(self, *, prepared: bool = False, fails: bool = False) -> None:
        self.did: list[str] = []
        self._prepared, self._fails = prepared, fails

    def is_prepared(self) -> bool:
        return self._prepared

    def start_engine(self) -> None:
        self.did.append("start")

    def prepare_cluster(self) -> None:
        self.did.append("prepare")
        if self._fails:
            raise CommandFailedError("go build failed")

    def stop_engine(self) -> None:
        self.did.append("stop")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["node", "supplies"])
    monkeypatch.setattr(module, "Cache", lambda steps: Cache(tmp_path, steps=steps))
    monkeypatch.setattr(module, "images_are_public", lambda: False)
    monkeypatch.setattr(module, "missing_for_node_level", list)


def use(monkeypatch: pytest.MonkeyPatch, supply: NotingSupply) -> list[str]:
    def make(cache: Cache, steps: Steps, *, public: bool) -> NotingSupply:
        return supply

    monkeypatch.setattr(module, "make_supply", make)
    return supply.did


def test_supplies_are_built_on_an_engine_that_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    did = use(monkeypatch, NotingSupply())
    assert main() == 0
    assert did == ["start", "prepare", "stop"]


def test_a_build_that_fails_is_told_and_leaves_no_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    did = use(monkeypatch, NotingSupply(fails=True))
    assert main() == 1
    assert did == ["start", "prepare", "stop"]
    assert "go build failed" in capsys.readouterr().err


def test_nothing_happens_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    did = use(monkeypatch, NotingSupply(prepared=True))
    assert main() == 0
    assert did == []


def test_nothing_happens_where_images_are_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "images_are_public", lambda: True)
    did = use(monkeypatch, NotingSupply())
    assert main() == 0
    assert did == []


def test_a_missing_prerequisite_is_named_before_anything_is_begun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "missing_for_node_level", lambda: [Missing("Go", "install it")])
    did = use(monkeypatch, NotingSupply())
    assert main() == 1
    assert did == []
    assert "Go" in capsys.readouterr().err
