"""How long a pod keeps its place in its group once it is on its way out."""

from __future__ import annotations

import math
from collections.abc import Iterable

from muster.controllers.clock import seconds_of
from muster.kube.objects import Pod
from muster.ray.pod_health import is_terminating

STUCK_SECONDS = 30.0
"""How long after the end of its grace period a pod that is still there is taken for stuck (its node is dead)."""

_ENDED = ("Failed", "Succeeded")


def keeps_place_until(pod: Pod) -> float:
    """Unix seconds until which no successor of a pod that has to go may come, unless it is gone before.

    Infinite for a pod that was not asked to go yet. A pod that ended holds nothing any more; one that a dead node
    never confirms would hold its place for ever, so its time is bounded.
    """
    if pod.status.phase in _ENDED:
        return 0.0
    if not is_terminating(pod):
        return math.inf
    return (seconds_of(pod.metadata.deletion_timestamp) or 0.0) + STUCK_SECONDS


def not_stuck(pods: Iterable[Pod], now: float) -> list[Pod]:
    """The pods without those that should have gone by `now` and whose end nobody confirms."""
    return [pod for pod in pods if not is_terminating(pod) or keeps_place_until(pod) > now]


def created(pod: Pod) -> float:
    """Unix seconds of the creation; 0 when unknown."""
    return seconds_of(pod.metadata.creation_timestamp) or 0.0
