"""What a simulation can't know: the opinions of programs outside, which only the scheduler of the cluster asks."""

from __future__ import annotations

from muster.scheduler.conf import SchedulerConfiguration, not_asked_here


def left_unasked(configuration: SchedulerConfiguration) -> list[str]:
    """In words, what is left out of the answers because it would have to be asked for."""
    return [
        f"what plugin {name!r} would say: it is asked by the cluster's scheduler only, here it refuses nothing"
        for name in not_asked_here(configuration)
    ]
