from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.node.machine_state import (
    MachineState,
    forward_policy,
    read_sysctls,
    without_engine_rules,
    write_sysctls,
)

WITH_ENGINE = """\
*mangle
:FORWARD ACCEPT [1:2]
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [3:4]
:DOCKER - [0:0]
:DOCKER-USER - [0:0]
:SITE - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -o br-0123456789ab -j ACCEPT
-A FORWARD -i br-lan -j SITE
-A DOCKER-USER -j RETURN
COMMIT
*nat
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -s 172.18.0.0/16 ! -o br-0123456789ab -j MASQUERADE
-A POSTROUTING -s 10.9.0.0/16 -j MASQUERADE
COMMIT
"""

CLEANED = """\
*mangle
:FORWARD ACCEPT [1:2]
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [3:4]
:SITE - [0:0]
-A FORWARD -i br-lan -j SITE
COMMIT
*nat
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -s 10.9.0.0/16 -j MASQUERADE
COMMIT
"""


def test_the_engines_rules_and_policy_go_and_every_other_rule_stays() -> None:
    assert without_engine_rules(WITH_ENGINE, "ACCEPT") == CLEANED


def test_rules_without_an_engine_are_not_touched() -> None:
    assert without_engine_rules(CLEANED, forward_policy(CLEANED)) == CLEANED


@pytest.mark.parametrize(
    ("rules", "policy"),
    [("", "ACCEPT"), (WITH_ENGINE, "DROP"), (CLEANED, "ACCEPT"), ("*mangle\n:FORWARD DROP [0:0]\nCOMMIT\n", "ACCEPT")],
)
def test_the_forward_policy_is_that_of_the_filter_table(rules: str, policy: str) -> None:
    assert forward_policy(rules) == policy


def sysctl_tree(root: Path, **values: str) -> Path:
    for name, value in values.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    return root


def test_changed_sysctls_return_to_what_they_were_and_others_are_not_written(tmp_path: Path) -> None:
    root = sysctl_tree(tmp_path, vm__overcommit_memory="0", kernel__panic="1")
    saved = read_sysctls(root)
    assert saved == {"vm/overcommit_memory": "0", "kernel/panic": "1"}
    (root / "vm/overcommit_memory").write_text("1\n")
    untouched = (root / "kernel/panic").stat().st_mtime_ns
    write_sysctls(root, saved)
    assert read_sysctls(root) == saved
    assert (root / "kernel/panic").stat().st_mtime_ns == untouched


def test_a_sysctl_that_this_kernel_no_longer_has_is_passed_over(tmp_path: Path) -> None:
    root = sysctl_tree(tmp_path, kernel__panic="1")
    write_sysctls(root, {"net/bridge/bridge-nf-call-iptables": "1", "kernel/panic": "5"})
    assert read_sysctls(root) == {"kernel/panic": "5"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MachineState:
    """A machine whose kernel settings are files, and whose packet filter is empty."""
    monkeypatch.setattr("tests.cluster.node.machine_state._rules", lambda family: "")
    sysctl_tree(tmp_path / "sys", net__ipv4__ip_forward="0")
    return MachineState(tmp_path / "machine.json", sysctls=tmp_path / "sys")


def test_the_state_before_a_killed_run_is_what_is_restored(machine: MachineState, tmp_path: Path) -> None:
    forward = tmp_path / "sys/net/ipv4/ip_forward"
    machine.save()
    forward.write_text("1\n")
    machine.save()
    machine.restore()
    assert forward.read_text() == "0"
    assert not machine.is_recorded()


def test_once_restored_the_next_run_starts_from_what_is_there_by_then(machine: MachineState, tmp_path: Path) -> None:
    forward = tmp_path / "sys/net/ipv4/ip_forward"
    machine.save()
    machine.restore()
    forward.write_text("1\n")
    machine.save()
    machine.restore()
    assert forward.read_text() == "1\n"


def test_restoring_without_a_record_changes_nothing(machine: MachineState, tmp_path: Path) -> None:
    (tmp_path / "sys/net/ipv4/ip_forward").write_text("1\n")
    machine.restore()
    assert (tmp_path / "sys/net/ipv4/ip_forward").read_text() == "1\n"
