"""One scheduling cycle: a function of the model, the configuration and the time."""

from __future__ import annotations

from muster.scheduler.cache import SchedulerCache
from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.outcome import Outcome


def run_cycle(cache: SchedulerCache, configuration: SchedulerConfiguration, now: float) -> Outcome:
    """Decide. `now` is Unix seconds. The cache then holds what was decided (Binding, Releasing) and waits for word."""
    return Outcome()
