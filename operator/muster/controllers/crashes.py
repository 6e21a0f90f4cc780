"""Pods that end again and again, each time replaced by another: a crash loop that no kubelet sees.

A pod whose kubelet must not restart it (the second autoscaler, SidecarMode) ends for good when a container fails, and
another takes its place in the cluster. How often that has happened at a place is counted here, while it happens; in
memory, so that after a restart of the operator it has to happen again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from muster.controllers.clock import Clock
from muster.controllers.pod_trouble import CRASH_LOOP, HOPELESS_CRASHES, SEEN_CRASHING, Trouble, trouble_of
from muster.kube.objects import Pod
from muster.ray import labels
from muster.ray.pod_health import is_running_and_ready, is_terminating

FORGET_SECONDS: Final = 600.0
"""After so long without a crash a place begins anew, as a kubelet's back-off does."""
_REMEMBERED: Final = 8
"""Pods of one place that are there at the same time, at most: those that can't be deleted are seen again and again."""

_Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Crashes:
    """How many at one place, in a row; `pods` are the UIDs of the last few."""

    pods: tuple[str, ...]
    times: int
    last: float
    trouble: Trouble


class CrashedPods:
    """The places of all clusters, by the clusters' UIDs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._clusters: dict[str, dict[_Place, _Crashes]] = {}

    def note(self, cluster: str, pod: Pod) -> None:
        """The pod can't go on and is to be replaced; it counts, once, if a container of its own has failed."""
        trouble = trouble_of(pod)
        if trouble is None or not trouble.ended or pod.status.reason:  # the last: its kubelet had it go, say Evicted
            return
        self._forget_old()
        places = self._clusters.setdefault(cluster, {})
        before = places.get(_place(pod))
        counted = () if before is None else before.pods
        if pod.metadata.uid not in counted:
            times = 1 if before is None else before.times + 1
            pods = (*counted, pod.metadata.uid)[-_REMEMBERED:]
            places[_place(pod)] = _Crashes(pods, times, self._clock.now(), trouble)

    def troubles(self, cluster: str, pods: Iterable[Pod]) -> list[Trouble]:
        """Where pods crash on. A place whose present pod is ready has done better this time."""
        self._forget_old()
        places = self._clusters.get(cluster)
        if not places:
            return []
        well = {_place(pod) for pod in pods if is_running_and_ready(pod) and not is_terminating(pod)}
        return [_told(one) for place, one in places.items() if one.times >= SEEN_CRASHING and place not in well]

    def _forget_old(self) -> None:
        old = self._clock.now() - FORGET_SECONDS
        for cluster, places in list(self._clusters.items()):
            self._clusters[cluster] = left = {place: one for place, one in places.items() if one.last > old}
            if not left:
                del self._clusters[cluster]


def _place(pod: Pod) -> _Place:
    known = pod.metadata.labels
    return known.get(labels.GROUP, ""), known.get(labels.REPLICA_INDEX, ""), known.get(labels.HOST_INDEX, "")


def _told(crashes: _Crashes) -> Trouble:
    detail = f"{crashes.trouble.detail}; {crashes.times} pods in its place have ended so, one after the other"
    hopeless = 0.0 if crashes.times >= HOPELESS_CRASHES else math.inf
    return replace(crashes.trouble, reason=CRASH_LOOP, detail=detail, hopeless_from=hopeless, ended=False)
