"""Coscheduling, as the benchmark builds and runs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import coscheduling
from tests.cluster import versions
from tests.cluster.binaries import MODULE as PROGRAMS
from tests.cluster.cache import Cache
from tests.cluster.lock_kuberay import shared
from tests.cluster.prerequisites import PrerequisiteError


def test_without_go_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match=r"Go 1\.24 or later"):
        coscheduling.program(Cache(tmp_path / "cache"))


def test_the_module_is_locked_to_the_pinned_versions() -> None:
    go_mod = (coscheduling.MODULE / "go.mod").read_text()
    assert f"{coscheduling.PLUGINS_MODULE} {versions.SCHEDULER_PLUGINS}\n" in go_mod
    assert f"replace k8s.io/kubernetes => k8s.io/kubernetes {versions.KUBERNETES}\n" in go_mod


def test_what_it_shares_with_the_programs_is_compiled_once() -> None:
    go_mod = (coscheduling.MODULE / "go.mod").read_text()
    held = dict(re.findall(r"^replace (\S+) => \S+ (v\S+)$", go_mod, re.MULTILINE))
    selected = dict(re.findall(r"^\t(\S+) (v\S+)", go_mod, re.MULTILINE))
    differing = shared((PROGRAMS / "go.mod").read_text(), selected)
    assert {module: held.get(module) for module in differing} == differing


def test_it_is_the_one_scheduler_of_its_configuration() -> None:
    found = coscheduling.configuration(Path("/run/kubeconfig"), 2000)
    assert found["clientConnection"] == {"kubeconfig": "/run/kubeconfig", "qps": 2000, "burst": 2000}
    assert [profile["schedulerName"] for profile in found["profiles"]] == ["default-scheduler"]
