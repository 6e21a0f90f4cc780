"""What an engine with a kind cluster changes on the machine, and how it is put back.

The state is recorded in a file before the first change. A record that is already there stays as it is: it was left by a
run that was killed, and holds the truth from before that run.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

from tests.cluster.process import run

SYSCTLS = (
    "vm/overcommit_memory",
    "kernel/panic",
    "kernel/panic_on_oops",
    "net/ipv4/ip_forward",
    "net/bridge/bridge-nf-call-iptables",
    "net/bridge/bridge-nf-call-ip6tables",
)
"""Set by kubelets (the first three) and by the engine, for the whole machine."""

_ENGINE_RULE = re.compile(r"DOCKER|\bbr-[0-9a-f]{12}\b")
_FAMILIES = ("iptables", "ip6tables")
_FOLDERS = tuple(
    Path(name)
    for name in ("/lib/modules", "/run/docker/plugins", "/run/docker", "/run/containerd/s", "/run/containerd")
)
"""Made by the engine, the first because kind mounts it into its nodes."""


class MachineState:
    """The machine's settings as they were when `record` was made; `sysctls` is where the kernel shows its own."""

    def __init__(self, record: Path, *, sysctls: Path = Path("/proc/sys")) -> None:
        self._record, self._sysctls = record, sysctls

    def is_recorded(self) -> bool:
        """Tell whether a state has been saved that is not restored yet."""
        return self._record.exists()

    def save(self) -> None:
        """Record the present state, unless a record of an earlier run has to be restored yet."""
        if self._record.exists():
            return
        state = {
            "sysctls": read_sysctls(self._sysctls),
            "forward": {family: forward_policy(_rules(family)) for family in _FAMILIES},
            "new_folders": [str(folder) for folder in _FOLDERS if not folder.exists()],
        }
        partial = self._record.with_suffix(".new")
        partial.write_text(json.dumps(state))
        partial.rename(self._record)

    def restore(self) -> None:
        """Put everything back that still differs from the record, and forget the record."""
        if not self._record.exists():
            return
        state = json.loads(self._record.read_text())
        for family in _FAMILIES:
            _remove_engine_rules(family, state["forward"][family])
        for folder in (*map(Path, state["new_folders"]), *Path("/sys/fs/cgroup").glob("*/docker")):
            # An empty one only: what is in use by now is not ours.
            with contextlib.suppress(OSError):
                folder.rmdir()
        write_sysctls(self._sysctls, state["sysctls"])
        self._record.unlink()


def read_sysctls(root: Path) -> dict[str, str]:
    """Return the values of SYSCTLS that this kernel has, by name."""
    return {name: (root / name).read_text().strip() for name in SYSCTLS if (root / name).exists()}


def write_sysctls(root: Path, values: dict[str, str]) -> None:
    """Write the values that differ from the present ones."""
    present = read_sysctls(root)
    for name, value in values.items():
        if name in present and present[name] != value:
            (root / name).write_text(value)


def without_engine_rules(rules: str, forward: str) -> str:
    """Return an iptables-save text without the engine's chains and rules, and with `forward` as FORWARD's policy.

    Every other rule stays: others may have added theirs since the engine started.
    """
    kept, table = [], ""
    for line in rules.splitlines():
        table = line if line.startswith("*") else table
        if table == "*filter":
            line = re.sub(r"^:FORWARD \w+", f":FORWARD {forward}", line)
        if not _ENGINE_RULE.search(line):
            kept.append(f"{line}\n")
    return "".join(kept)


def forward_policy(rules: str) -> str:
    """Return what the filter table of an iptables-save text does with forwarded packets that no rule matches."""
    in_filter = rules.partition("*filter")[2].partition("COMMIT")[0]
    found = re.search(r"^:FORWARD (\w+)", in_filter, re.MULTILINE)
    return found[1] if found else "ACCEPT"


def _rules(family: str) -> str:
    try:
        return run([f"{family}-save"])
    except FileNotFoundError:
        return ""


def _remove_engine_rules(family: str, forward: str) -> None:
    rules = _rules(family)
    cleaned = without_engine_rules(rules, forward)
    if cleaned != rules:
        run([f"{family}-restore"], input_text=cleaned)
