"""Where the scheduler's configuration comes from, and how a change of it arrives.

The file is Volcano's YAML, usually mounted from a ConfigMap; the kubelet replaces it by switching a symbolic link, so
its modification time is compared on a timer. A file that can't be read or used keeps the configuration that was valid
before and is reported once, by its field.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import yaml

from muster.engine.configuration_text import find_configuration
from muster.engine.installed_plugins import installed_plugins
from muster.engine.yaml_lines import line_of, repeated_key
from muster.scheduler.conf import DEFAULT, ConfigurationError, SchedulerConfiguration, load_configuration
from muster.yaml_documents import SafeLoader

if TYPE_CHECKING:  # a simulation has no use for asyncio, which the clock needs
    from muster.engine.clock import Clock

logger = logging.getLogger(__name__)


class ConfigurationSource(Protocol):
    """Gives the configuration that holds now."""

    @property
    def current(self) -> SchedulerConfiguration:
        """The configuration for the next cycle."""

    async def watch(self, changed: Callable[[], None], refused: Callable[[str], None]) -> None:
        """Call `changed` after each change, `refused` with a message for each new state that can't be used."""


class FixedConfiguration:
    """A configuration that never changes."""

    def __init__(self, configuration: SchedulerConfiguration = DEFAULT) -> None:
        self._configuration = configuration

    @property
    def current(self) -> SchedulerConfiguration:
        """The configuration given."""
        return self._configuration

    async def watch(self, changed: Callable[[], None], refused: Callable[[str], None]) -> None:
        """Return at once: there is nothing to watch."""


class FileConfiguration:
    """A configuration file, read again when it changes.

    Raises ConfigurationError or OSError when the file can't be used at the start: there is nothing to fall back on.
    """

    def __init__(self, path: Path, clock: Clock, *, interval: float = 5.0) -> None:
        self._path = path
        self._clock = clock
        self._interval = interval
        self._stamp = self._read_stamp()
        self._configuration = read_configuration(path)

    @property
    def current(self) -> SchedulerConfiguration:
        """The last configuration that was valid."""
        return self._configuration

    async def watch(self, changed: Callable[[], None], refused: Callable[[str], None]) -> None:
        """Compare the file's stamp every `interval` seconds, until cancelled."""
        while True:
            await self._clock.sleep(self._interval)
            stamp = self._read_stamp()
            if stamp == self._stamp:
                continue
            self._stamp = stamp
            try:
                self._configuration = read_configuration(self._path)
            except (OSError, ConfigurationError) as error:
                logger.error("the scheduler's configuration stays as it was: %s", error)
                refused(str(error))
            else:
                logger.info("the scheduler's configuration was read again from %s", self._path)
                changed()

    def _read_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def read_configuration(path: Path) -> SchedulerConfiguration:
    """Read a configuration file. Raises OSError, or ConfigurationError naming the file, the line and the field."""
    return parse_configuration(path.read_bytes(), str(path))


def parse_configuration(content: bytes, name: str) -> SchedulerConfiguration:
    """Read the content of a configuration file, or of a manifest of the ConfigMap that holds one.

    Raises ConfigurationError naming it by `name`, the line and the field.
    """
    text = find_configuration(content, name)
    try:
        document = yaml.load(text.content, Loader=SafeLoader)  # noqa: S506 - as safe as its name
        twice = repeated_key(text.content)
    except Exception as error:  # PyYAML raises many others beside its own: for a date that there is not, an empty !!int
        raise ConfigurationError(text.place, f"not YAML: {error}") from error
    if twice is not None:
        raise ConfigurationError(text.at(twice[1]), f"{twice[0]} is there twice")
    try:
        return load_configuration(document, installed_plugins())
    except ConfigurationError as error:
        line = line_of(text.content, error.field)
        raise ConfigurationError(text.at(line) if line else text.place, str(error)) from error
    except Exception as error:  # whatever nobody foresaw: a file must not end the scheduler
        raise ConfigurationError(text.place, f"can't be used: {error!r}") from error
