"""KubeRay's operator: how it is built, and what its definitions are reduced to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster import kuberay, versions
from tests.cluster.binaries import MODULE as PROGRAMS
from tests.cluster.binaries import PROGRAMS as NAMES
from tests.cluster.cache import Cache
from tests.cluster.lock_kuberay import shared
from tests.cluster.prerequisites import PrerequisiteError


def test_without_go_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match=r"Go 1\.24 or later"):
        kuberay.operator_binary(Cache(tmp_path / "cache"))
    assert not kuberay.is_built(Cache(tmp_path / "cache"))


def test_it_is_built_once_in_its_own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "go").write_text(
        '#!/bin/bash\n[ "$1" = env ] && { echo go1.26.8; echo local; exit; }\n'
        'while [ "$1" != -o ]; do shift; done\necho "$PWD $3" > "$2${3##*/}"\n'
    )
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    cache = Cache(tmp_path / "cache")
    program = kuberay.operator_binary(cache)
    assert program.read_text().strip() == f"{kuberay.MODULE} {kuberay.KUBERAY_MODULE}"
    (tmp_path / "go").unlink()
    assert kuberay.is_built(cache)
    assert kuberay.operator_binary(cache) == program


def test_no_cluster_has_it_among_its_programs() -> None:
    assert not [name for name, package in NAMES.items() if "kuberay" in f"{name} {package}"]


def test_the_module_is_locked_to_the_pinned_version() -> None:
    go_mod = (kuberay.MODULE / "go.mod").read_text()
    assert f"require {kuberay.KUBERAY_MODULE} {versions.KUBERAY} " in go_mod


def test_what_it_shares_with_the_programs_is_compiled_once() -> None:
    go_mod = (kuberay.MODULE / "go.mod").read_text()
    held = dict(re.findall(r"^replace (\S+) => \S+ (v\S+)$", go_mod, re.MULTILINE))
    selected = dict(re.findall(r"^\t(\S+) (v\S+)", go_mod, re.MULTILINE))
    assert shared((PROGRAMS / "go.mod").read_text(), selected) == held


def test_shared_libraries_are_held_to_what_the_programs_are_built_from() -> None:
    programs = (
        "\ta.io/b v1.0.0\n\tc.io/d v1.5.0\n\tsigs.k8s.io/controller-runtime v0.1.0\nreplace c.io/d => c.io/d v1.2.0\n"
    )
    selected = {"a.io/b": "v1.1.0", "c.io/d": "v1.2.0", "e.io/f": "v3.0.0", "sigs.k8s.io/controller-runtime": "v0.2.0"}
    assert shared(programs, selected) == {"a.io/b": "v1.0.0"}


def test_a_definition_loses_its_texts_but_no_field_of_that_name() -> None:
    schema = {"description": "text", "properties": {"description": {"type": "string", "description": "text"}}}
    assert kuberay.without_descriptions([schema]) == [{"properties": {"description": {"type": "string"}}}]
