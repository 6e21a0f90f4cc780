"""What a plugin is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from muster.scheduler.cache import SchedulerCache
    from muster.scheduler.extender_client import ExtenderClient
    from muster.scheduler.extension_points import ExtensionPoints
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session


class Plugin:
    """Base of all plugins.

    `bounds_tree`: with `enableHierarchy` the cap of a queue binds all queues below it, whatever the other flags say.

    `arguments` lists what the plugin understands in its `arguments` section, with the parser of each value (it raises
    ValueError with what is wrong); `argument_prefixes` does so for keys that end in a name of the user's
    (`binpack.resources.nvidia.com/gpu`).
    """

    name: ClassVar[str]
    protects: ClassVar[bool] = False
    """Whom it does not let go is safe for good: no later tier is asked about them (Volcano would ask it)."""
    arguments: ClassVar[dict[str, Callable[[object], Any]]] = {}
    bounds_tree: ClassVar[bool] = False
    argument_prefixes: ClassVar[dict[str, Callable[[object], Any]]] = {}
    asks_outside: ClassVar[bool] = False
    """Whether its answers come from a program outside of Muster, which is there only beside a real cluster."""
    counts_devices: bool = False
    """Whether the devices that pods claim count against their queues."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        """`arguments` are parsed already; what was not given is absent. Raises ValueError when they don't agree."""

    def connect(self, extenders: ExtenderClient) -> None:
        """Called before `register` where programs outside can be asked."""

    def register(self, points: ExtensionPoints) -> None:
        """Say where the plugin takes part."""

    def job_deadline(self, session: Session, job: JobInfo) -> float | None:
        """When (Unix seconds, in the future) the plugin will think otherwise of the job although nothing changes."""

    def may_wait_until(self, job: JobInfo) -> float | None:
        """Until when (Unix seconds) the job itself agrees to wait: before that no room is held for it (P9)."""

    def deadline(self, session: Session) -> float | None:
        """When it will think otherwise of everything: a cycle is run then, and `on_session_open` takes note."""

    def attach(self, cache: SchedulerCache) -> None:
        """Called once, before the first cycle with the configuration: what the plugin may read at any time."""

    def on_cycle_start(self, session: Session) -> None:
        """Called before anything is looked at in a cycle."""

    def on_cycle_end(self, session: Session) -> None:
        """Called when nothing more is placed or undone in it."""

    def on_session_open(self, session: Session) -> None:
        """Called at the start of each cycle, in the order of tiers."""

    def on_session_close(self, session: Session) -> None:
        """Called at the end of each cycle, before what was not committed is undone."""
