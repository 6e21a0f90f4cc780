"""Coscheduling, as the benchmark builds and runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import coscheduling
from tests.cluster import versions
from tests.cluster.binaries import MODULE as PROGRAMS
from tests.cluster.cache import Cache
from tests.cluster.lock_kuberay import shared
from tests.cluster.lock_programs import required_versions
from tests.cluster.prerequisites import PrerequisiteError


def test_without_go_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match=r"Go 1\.24 or later"):
        coscheduling.program(Cache(tmp_path / "cache"))


def test_the_module_is_locked_to_the_pinned_versions() -> None:
    selected = required_versions((coscheduling.MODULE / "go.mod").read_text())
    assert selected[coscheduling.PLUGINS_MODULE] == versions.SCHEDULER_PLUGINS
    assert selected["k8s.io/kubernetes"] == versions.KUBERNETES


def test_what_it_shares_with_the_programs_is_compiled_once() -> None:
    assert shared((PROGRAMS / "go.mod").read_text(), (coscheduling.MODULE / "go.mod").read_text()) == []


def test_it_is_the_one_scheduler_of_its_configuration() -> None:
    found = coscheduling.configuration(Path("/run/kubeconfig"), 2000)
    assert found["clientConnection"] == {"kubeconfig": "/run/kubeconfig", "qps": 2000, "burst": 2000}
    assert [profile["schedulerName"] for profile in found["profiles"]] == ["default-scheduler"]
