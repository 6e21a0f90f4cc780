"""What the command line of a running scheduler says besides its configuration file.

`muster explain` has to ask the scheduler that runs, not one with other time-outs or for other pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from muster.scheduler.conf import SchedulerConfiguration

CONFIGURATION_FLAG: Final = "--scheduler-configuration"
DEFAULT_NAMES: Final = ("muster", "volcano")
_NAME_FLAG: Final = "--scheduler-name"
_SECONDS: Final = {
    "gang_repair_timeout": "--gang-repair-timeout",
    "admission_timeout": "--admission-timeout",
    "starvation_timeout": "--starvation-timeout",
}


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Flags of `muster run` on which a decision depends; what is not said is None, or empty. Times in seconds."""

    gang_repair_timeout: float | None = None
    admission_timeout: float | None = None
    starvation_timeout: float | None = None
    scheduler_names: tuple[str, ...] = ()

    def lay_over(self, configuration: SchedulerConfiguration) -> SchedulerConfiguration:
        """The configuration with the time-outs that are said."""
        said = {name: seconds for name in _SECONDS if (seconds := getattr(self, name)) is not None}
        return replace(configuration, **said)

    def flags(self) -> list[str]:
        """It all as `--flag=VALUE`."""
        said = [(flag, getattr(self, name)) for name, flag in _SECONDS.items()]
        said += [(_NAME_FLAG, name) for name in self.scheduler_names]
        return [f"{flag}={value}" for flag, value in said if value is not None]


NOTHING_SAID: Final = CommandLine()


def read_command_line(arguments: Sequence[str]) -> CommandLine:
    """Find the flags among a container's arguments; the last of a kind holds. Raises ValueError for no number."""
    return CommandLine(
        **{name: _seconds(arguments, flag) for name, flag in _SECONDS.items()},
        scheduler_names=tuple(values_of(_NAME_FLAG, arguments)),
    )


def values_of(flag: str, arguments: Sequence[str]) -> Iterator[str]:
    """The values given to a flag, as `--flag VALUE` or `--flag=VALUE`."""
    for argument, following in zip(arguments, [*arguments[1:], None], strict=False):
        if argument == flag and following is not None:
            yield following
        elif argument.startswith(f"{flag}="):
            yield argument.removeprefix(f"{flag}=")


def _seconds(arguments: Sequence[str], flag: str) -> float | None:
    values = list(values_of(flag, arguments))
    try:
        return float(values[-1]) if values else None
    except ValueError:
        raise ValueError(f"{flag}: {values[-1]!r} is no number") from None
