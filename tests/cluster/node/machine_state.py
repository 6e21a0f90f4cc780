"""What an engine with a kind cluster changes on the machine, and how it is put back.

The state is recorded in a file before the first change. A record that is already there stays as it is: it was left by a
run that was killed, and holds the truth from before that run.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

SYSCTLS = (
    *("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"),
    "fs/file-max",
    *("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"),
)
"""Set for the whole machine by kubelets (the first three), by systemd in the nodes, and by the engine."""

_FOLDERS = ("/lib/modules", "/run/docker/plugins", "/run/docker", "/run/containerd/s", "/run/containerd")
"""Made by the engine, the first because kind mounts it into its nodes."""


class MachineState:
    """The machine's settings as they were when `record` was made; `root` is where the machine's files are."""

    def __init__(self, record: Path, *, root: Path = Path("/")) -> None:
        self._record, self._root = record, root

    def is_recorded(self) -> bool:
        """Tell whether a state has been saved that is not restored yet."""
        return self._record.exists()

    def save(self) -> None:
        """Record the present state, unless a record of an earlier run has to be restored yet."""
        if self._record.exists():
            return
        absent = [name for name in _FOLDERS if not self._path(name).exists()]
        partial = self._record.with_suffix(".new")
        partial.write_text(json.dumps({"sysctls": self._read_sysctls(), "absent": absent}))
        partial.rename(self._record)

    def restore(self) -> None:
        """Put everything back that still differs from the record, and forget the record."""
        if not self._record.exists():
            return
        state = json.loads(self._record.read_text())
        cgroups = self._path("/sys/fs/cgroup").glob("*/docker")
        for folder in (*map(self._path, state["absent"]), *cgroups):
            # An empty one only: what is in use by now is not ours.
            with contextlib.suppress(OSError):
                folder.rmdir()
        present = self._read_sysctls()
        for name, value in state["sysctls"].items():
            if name in present and present[name] != value:
                self._sysctl(name).write_text(value)
        self._record.unlink()

    def _read_sysctls(self) -> dict[str, str]:
        """Return the values of SYSCTLS that this kernel has, by name."""
        return {name: self._sysctl(name).read_text().strip() for name in SYSCTLS if self._sysctl(name).exists()}

    def _sysctl(self, name: str) -> Path:
        return self._path(f"/proc/sys/{name}")

    def _path(self, name: str) -> Path:
        return self._root / name.lstrip("/")
