"""Runs runc for a process that may not hold CAP_SYS_RESOURCE, as Docker's `--privileged` asks for.

Called as `runc_without_resource.py RUNC ARGUMENTS`: takes from the container's (or the exec's) specification what the
kernel would refuse, the capability and a negative memory kill score, then becomes RUNC. Uses the standard library only,
since it runs for every container and every exec.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

CAPABILITY = "CAP_SYS_RESOURCE"
COMMANDS = ("create", "run", "exec")


def main(arguments: list[str]) -> None:
    """Amend the specification that the arguments name, if they name one, and become runc."""
    runc, *rest = arguments
    file = specification(rest)
    if file is not None and file.exists():
        document = json.loads(file.read_text())
        # `exec` names a process, the others a container that holds one.
        amend(document if "args" in document else document.get("process") or {})
        file.write_text(json.dumps(document))
    os.execv(runc, [runc, *rest])  # noqa: S606


def specification(arguments: list[str]) -> Path | None:
    """Return the file that describes what runc shall start, or None when it shall start nothing."""
    command = next((word for word in arguments if word in COMMANDS), None)
    if command is None:
        return None
    if command == "exec":
        process = option(arguments, "--process", "-p")
        return Path(process) if process else None
    return Path(option(arguments, "--bundle", "-b") or ".") / "config.json"


def option(arguments: list[str], *names: str) -> str | None:
    """Return the value of an option, given as `--name value` or `--name=value`."""
    for index, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else arguments[index + 1]
    return None


def amend(process: dict[str, Any]) -> None:
    """Take the capability and a negative kill score from a process's specification."""
    for held in (process.get("capabilities") or {}).values():
        if CAPABILITY in held:
            held.remove(CAPABILITY)
    if (process.get("oomScoreAdj") or 0) < 0:
        del process["oomScoreAdj"]


if __name__ == "__main__":
    main(sys.argv[1:])
