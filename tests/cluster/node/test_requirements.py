from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cluster.node import requirements
from tests.cluster.node.docker import Docker
from tests.cluster.node.ray_image import PUBLIC_TAG


@pytest.fixture
def docker_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Put a docker in the PATH that does what the shell text says; its calls are lines of the file."""

    def write(text: str) -> Path:
        calls, program = tmp_path / "calls", tmp_path / "docker"
        program.write_text(f'#!/bin/sh\necho "$*" >>{calls}\n{text}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return calls

    return write


@pytest.mark.parametrize(
    ("does", "public"),
    [
        pytest.param("exit 0", True, id="the engine answers and the image is found"),
        pytest.param('[ "$1" != manifest ]', False, id="no registry has the image, or none is in reach"),
        pytest.param('[ "$1" != info ]', False, id="no engine"),
        pytest.param('[ "$1" != manifest ] || exec sleep 60', False, id="the registry gives no answer"),
    ],
)
def test_public_images_are_used_where_the_engine_finds_them(
    docker_that: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, does: str, public: bool
) -> None:
    calls = docker_that(does)
    monkeypatch.delenv(requirements.CHOICE, raising=False)
    monkeypatch.setattr(requirements, "_REGISTRY_SECONDS", 1.0)
    assert requirements.images_are_public() is public
    asked = [line for line in calls.read_text().splitlines() if line.startswith("manifest")]
    assert asked in ([f"manifest inspect {PUBLIC_TAG}"], [])


def test_a_machine_without_a_docker_client_has_no_public_images(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert requirements.public_images_are_in_reach(Docker()) is False


@pytest.mark.parametrize(("chosen", "public"), [("public", True), ("built", False)])
def test_the_environment_may_choose_the_way(monkeypatch: pytest.MonkeyPatch, chosen: str, public: bool) -> None:
    monkeypatch.setenv(requirements.CHOICE, chosen)
    assert requirements.images_are_public() is public


def test_a_choice_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(requirements.CHOICE, "pubic")
    with pytest.raises(ValueError, match="pubic"):
        requirements.images_are_public()


def test_making_our_own_images_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(requirements.CHOICE, "built")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "root" in [missing.what for missing in requirements.missing_for_node_level()]


def path_with(folder: Path, *programs: str) -> str:
    for name in programs:
        (folder / name).touch(mode=0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("present", "packages"),
    [
        (["dockerd", "docker", "containerd", "ctr", "runc", "iptables", "debootstrap"], None),
        (["docker", "iptables", "debootstrap"], "docker.io containerd runc"),
        (["dockerd", "docker", "containerd", "ctr", "runc", "iptables"], "debootstrap"),
    ],
)
def test_only_packages_of_missing_programs_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, present: list[str], packages: str | None
) -> None:
    monkeypatch.setattr(requirements, "_SYSTEM_PATH", "")
    monkeypatch.setenv("PATH", path_with(tmp_path, *present))
    missing = requirements.missing_packages()
    assert (missing and missing.fix) == (
        packages and f"apt-get install --yes --no-remove --no-install-recommends {packages}"
    )
