"""KubeRay's operator: how it is built, and what its definitions are reduced to."""

from __future__ import annotations

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
    assert shared((PROGRAMS / "go.mod").read_text(), (kuberay.MODULE / "go.mod").read_text()) == []


_PROGRAMS = """
\tolder.io/a v1.9.0
\tnewer.io/a v1.5.0
\tplain.io/a v1.0.0
\tdated.io/a v0.0.0-20250101000000-aaaaaaaaaaaa
\tfinal.io/a v1.0.0-rc.1
\tsigs.k8s.io/controller-runtime v0.1.0
replace newer.io/a => newer.io/a v1.2.0
"""
_OWN = """
\tolder.io/a v1.10.0
\tnewer.io/a v1.4.0
\tplain.io/a v1.0.0
\tdated.io/a v0.0.0-20250202000000-000000000000
\tfinal.io/a v1.0.0
\tits.own/a v3.0.0
\tsigs.k8s.io/controller-runtime v0.2.0
replace newer.io/a => newer.io/a v1.3.0
replace plain.io/a => plain.io/a v0.9.0
"""


def test_shared_libraries_are_selected_in_the_version_that_the_programs_are_built_from() -> None:
    assert set(shared(_PROGRAMS, _OWN)) == {
        *("-exclude=older.io/a@v1.10.0", "-require=older.io/a@v1.9.0"),
        *("-require=newer.io/a@v1.5.0", "-replace=newer.io/a=newer.io/a@v1.2.0"),
        "-dropreplace=plain.io/a",
        "-exclude=dated.io/a@v0.0.0-20250202000000-000000000000",
        "-require=dated.io/a@v0.0.0-20250101000000-aaaaaaaaaaaa",
        *("-exclude=final.io/a@v1.0.0", "-require=final.io/a@v1.0.0-rc.1"),
    }


def test_a_definition_loses_its_texts_but_no_field_of_that_name() -> None:
    schema = {"description": "text", "properties": {"description": {"type": "string", "description": "text"}}}
    assert kuberay.without_descriptions([schema]) == [{"properties": {"description": {"type": "string"}}}]
