from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster import prerequisites, versions
from tests.cluster.prerequisites import Missing, PrerequisiteError, missing_debian_packages, missing_go, require


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing in it but what the test puts there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put_program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("version", "toolchain", "enough"),
    [
        ("go1.26.0", "local", True),
        ("go1.26.8", "auto", True),
        ("go1.27", "local", True),
        ("go2.0", "local", True),
        ("go1.23.9", "local", False),
        ("go1.23.9", "auto", True),  # fetches the release that a module asks for
        ("go1.21.0", "auto", True),
        ("go1.19.8", "", False),  # Debian bookworm's
        ("garbage", "local", False),
    ],
)
def test_go_has_to_be_new_enough(path: Path, version: str, toolchain: str, enough: bool) -> None:
    put_program(path, "go", f"echo {version}; echo {toolchain}")
    assert versions.GO_MINIMUM == (1, 24)
    assert (missing_go() is None) == enough


def test_a_machine_without_go_is_told_how_to_get_it(path: Path) -> None:
    missing = missing_go()
    assert missing is not None
    assert "no `go` in PATH" in missing.what
    assert missing.fix.startswith("curl -fsSL https://go.dev/dl/go")


def test_an_old_go_is_named(path: Path) -> None:
    put_program(path, "go", "echo go1.19.8; echo")
    assert "go1.19.8" in str(missing_go())


@pytest.mark.parametrize(("user", "is_missing"), [(0, False), (1000, True)])
def test_root_is_user_0(monkeypatch: pytest.MonkeyPatch, user: int, is_missing: bool) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert (prerequisites.missing_root() is not None) == is_missing


def test_one_command_installs_all_absent_packages(path: Path) -> None:
    put_program(
        path, "dpkg-query", 'case "$3" in jq) printf installed;; docker.io) printf config-files;; *) exit 1;; esac'
    )
    missing = missing_debian_packages("jq", "docker.io", "debootstrap")
    assert missing == Missing(
        "the Debian packages docker.io, debootstrap",
        "apt-get install --no-install-recommends docker.io debootstrap",
    )
    assert missing_debian_packages("jq") is None


def test_where_there_is_no_dpkg_every_package_is_absent(path: Path) -> None:
    assert "the Debian package jq" in str(missing_debian_packages("jq"))


def test_all_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(PrerequisiteError, match=r"(?s)this; install it with: a.*that; install it with: b"):
        require([None, Missing("this", "a"), Missing("that", "b")])


def test_nothing_missing_is_no_error() -> None:
    require([None, None])
