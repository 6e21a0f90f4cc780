"""The scheduler's configuration: Volcano's YAML document, parsed and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class ConfigurationError(ValueError):
    """The document can't be used; `field` says where (`tiers[0].plugins[1].name`)."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """What runs in a cycle. Timeouts in seconds; change them with `dataclasses.replace`."""

    actions: tuple[str, ...]
    gang_repair_timeout: float = 60.0
    admission_timeout: float = 300.0


def load_configuration(document: Mapping[str, Any]) -> SchedulerConfiguration:
    """Check a parsed document. Raises ConfigurationError."""
    raise ConfigurationError("", "not yet")


DEFAULT = SchedulerConfiguration(actions=("enqueue", "allocate", "backfill"))
