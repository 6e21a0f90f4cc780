"""Scheduler plugins that other packages bring.

A package announces a plugin by an entry point in the group `muster.scheduler.plugins`; it is imported only when a
configuration names it, and what goes wrong then is an error in that configuration, never in the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

GROUP = "muster.scheduler.plugins"


def installed_plugins() -> dict[str, Callable[[], object]]:
    """The plugins of all installed packages, by name; calling one imports it.

    Two packages that bring the same name are refused when a configuration asks for it: which one was meant?
    """
    found: dict[str, Callable[[], object]] = {}
    for point in entry_points(group=GROUP):
        found[point.name] = _twice(point.name) if point.name in found else point.load
    return found


def _twice(name: str) -> Callable[[], object]:
    def refuse() -> object:
        raise LookupError(f"more than one installed package brings a plugin {name!r}")

    return refuse
