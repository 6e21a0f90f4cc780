from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.node.machine_state import MachineState


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The files of a machine that forwards nothing and has no engine."""
    root = tmp_path / "root"
    for name, value in {"net/ipv4/ip_forward": "0", "kernel/panic": "1"}.items():
        sysctl(root, name).parent.mkdir(parents=True)
        sysctl(root, name).write_text(f"{value}\n")
    (root / "sys/fs/cgroup/pids").mkdir(parents=True)
    (root / "run").mkdir()
    return root


@pytest.fixture
def machine(tmp_path: Path, root: Path) -> MachineState:
    return MachineState(tmp_path / "machine.json", root=root)


def sysctl(root: Path, name: str) -> Path:
    return root / "proc/sys" / name


def test_changed_sysctls_return_to_what_they_were_and_others_are_not_written(machine: MachineState, root: Path) -> None:
    machine.save()
    sysctl(root, "net/ipv4/ip_forward").write_text("1\n")
    untouched = sysctl(root, "kernel/panic").stat().st_mtime_ns
    machine.restore()
    assert sysctl(root, "net/ipv4/ip_forward").read_text() == "0"
    assert sysctl(root, "kernel/panic").stat().st_mtime_ns == untouched


def test_a_sysctl_that_the_machine_no_longer_has_is_passed_over(machine: MachineState, root: Path) -> None:
    machine.save()
    sysctl(root, "net/ipv4/ip_forward").unlink()
    machine.restore()
    assert not sysctl(root, "net/ipv4/ip_forward").exists()


def test_the_state_before_a_killed_run_is_what_is_restored(machine: MachineState, root: Path) -> None:
    machine.save()
    sysctl(root, "net/ipv4/ip_forward").write_text("1\n")
    machine.save()
    machine.restore()
    assert sysctl(root, "net/ipv4/ip_forward").read_text() == "0"
    assert not machine.is_recorded()


def test_once_restored_the_next_run_starts_from_what_is_there_by_then(machine: MachineState, root: Path) -> None:
    machine.save()
    machine.restore()
    sysctl(root, "net/ipv4/ip_forward").write_text("1\n")
    machine.save()
    machine.restore()
    assert sysctl(root, "net/ipv4/ip_forward").read_text() == "1\n"


def test_restoring_without_a_record_changes_nothing(machine: MachineState, root: Path) -> None:
    sysctl(root, "net/ipv4/ip_forward").write_text("1\n")
    machine.restore()
    assert sysctl(root, "net/ipv4/ip_forward").read_text() == "1\n"


@pytest.mark.parametrize("content", [None, "in-use"])
def test_a_folder_that_the_engine_made_goes_unless_something_is_in_it(
    machine: MachineState, root: Path, content: str | None
) -> None:
    machine.save()
    (root / "run/docker/plugins").mkdir(parents=True)
    (root / "sys/fs/cgroup/pids/docker").mkdir()
    if content:
        (root / "run/docker/plugins" / content).touch()
    machine.restore()
    assert (root / "run/docker").exists() is bool(content)
    assert not (root / "sys/fs/cgroup/pids/docker").exists()


def test_a_folder_that_was_there_before_stays(machine: MachineState, root: Path) -> None:
    (root / "run/docker").mkdir()
    machine.save()
    machine.restore()
    assert (root / "run/docker").exists()
