"""Time-outs that the command line sets, laid over whatever configuration is in force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from muster.engine.configuration_source import ConfigurationSource
from muster.scheduler.conf import SchedulerConfiguration


class WithTimeouts:
    """A configuration source whose time-outs (in seconds) come from elsewhere than its file."""

    def __init__(self, source: ConfigurationSource, *, gang_repair: float, admission: float, starvation: float) -> None:
        self._source = source
        self._gang_repair = gang_repair
        self._admission = admission
        self._starvation = starvation
        self._read: SchedulerConfiguration | None = None
        self._laid_over: SchedulerConfiguration | None = None

    @property
    def current(self) -> SchedulerConfiguration:
        """The source's configuration with these time-outs; the same object for as long as the source's is."""
        found = self._source.current
        if self._laid_over is None or found is not self._read:
            self._read = found
            self._laid_over = replace(
                found,
                gang_repair_timeout=self._gang_repair,
                admission_timeout=self._admission,
                starvation_timeout=self._starvation,
            )
        return self._laid_over

    async def watch(self, changed: Callable[[], None], refused: Callable[[str], None]) -> None:
        """Watch the source."""
        await self._source.watch(changed, refused)
