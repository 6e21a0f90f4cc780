"""What the machine must have, and the command that installs what is missing."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from tests.cluster import versions


@dataclass(frozen=True)
class Missing:
    """Something that the machine lacks: what it is, and the command (or act) that helps."""

    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}; install it with: {self.fix}"


class PrerequisiteError(RuntimeError):
    """The machine lacks something; the message names each thing and its remedy. `missing` holds the same."""

    def __init__(self, missing: list[Missing]) -> None:
        super().__init__("\n".join(str(item) for item in missing))
        self.missing = missing


def require(found: Iterable[Missing | None]) -> None:
    """Raise PrerequisiteError if any check found something missing: `require([missing_go(), missing_root()])`."""
    missing = [item for item in found if item is not None]
    if missing:
        raise PrerequisiteError(missing)


def missing_go() -> Missing | None:
    """Check for a Go tool chain that is new enough for every module that the harness builds."""
    wanted = ".".join(map(str, versions.GO_MINIMUM))
    if shutil.which("go") is None:
        return Missing(f"Go {wanted} or later (no `go` in PATH)", _go_install())
    printed = subprocess.run(["go", "env", "GOVERSION", "GOTOOLCHAIN"], capture_output=True, text=True, check=False)
    match = re.match(r"go(\d+)\.(\d+)", printed.stdout)
    # From 1.21 on, Go fetches the release that a module asks for, unless it is told not to.
    minimum = (1, 21) if "\nauto" in printed.stdout else versions.GO_MINIMUM
    if match is None or (int(match[1]), int(match[2])) < minimum:
        return Missing(f"Go {wanted} or later (`go` is {printed.stdout.split()[:1] or printed.stderr})", _go_install())
    return None


def missing_root() -> Missing | None:
    """Check that this process is root."""
    return None if os.geteuid() == 0 else Missing("root", "sudo -E, in front of the same command")


def missing_debian_packages(*names: str) -> Missing | None:
    """Check that the Debian packages are installed; the remedy installs all that are not."""
    absent = [name for name in names if not _package_installed(name)]
    if not absent:
        return None
    what = f"the Debian package{'s' if len(absent) > 1 else ''} {', '.join(absent)}"
    return Missing(what, f"apt-get install --no-install-recommends {' '.join(absent)}")


def _package_installed(name: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return False
    command = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", name]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout == "installed"


def _go_install() -> str:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    archive = f"https://go.dev/dl/go{versions.GO_INSTALL}.linux-{machine}.tar.gz"
    return f"curl -fsSL {archive} | tar -C /usr/local -xz && export PATH=$PATH:/usr/local/go/bin"
