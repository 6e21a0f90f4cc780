"""Why a batch Job has no pod: the API server refuses it (a quota, pod security, a webhook).

Kubernetes' Job controller tells that in events alone, and tries on without end. Nobody watches the events of a whole
cluster for it: a Job that is still without a pod some seconds after it was made is strange enough to be asked about, by
its UID. The answer is remembered for a while, since such a Job is looked at every few seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from muster.controllers.children import Children
from muster.controllers.clock import Clock, seconds_of
from muster.kube.client import ApiClient
from muster.kube.errors import ApiError
from muster.kube.objects import Job, Pod
from muster.kube.resource import EVENTS

_PATIENCE: Final = 5.0
"""Seconds in which the Job controller makes a pod, also on a busy cluster."""
_REMEMBERED_SECONDS: Final = 15.0

_ENDED: Final = ("Succeeded", "Failed")
_OVER: Final = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
_BEFORE: Final = re.compile(r"^(\(combined from similar events\): )?(Error creating: )?")


class RefusedPods:
    """Asks about Jobs."""

    def __init__(self, client: ApiClient, clock: Clock, pods: Children[Pod]) -> None:
        self._client = client
        self._clock = clock
        self._pods = pods
        self._known: dict[str, tuple[float, str | None]] = {}

    async def of(self, job: Job) -> str | None:
        """Why the Job can't make its pod, the same words at each try; None where it can, or nobody knows."""
        if not self._is_strange(job):
            return None
        now = self._clock.now()
        self._known = {uid: entry for uid, entry in self._known.items() if entry[0] > now}
        known = self._known.get(job.metadata.uid)
        if known is not None:
            return known[1]
        answer = await self._ask(job)
        self._known[job.metadata.uid] = (now + _REMEMBERED_SECONDS, answer)
        return answer

    def _is_strange(self, job: Job) -> bool:
        over = any(one.type in _OVER and one.status == "True" for one in job.status.conditions)
        if over or job.spec.suspend or job.status.active or job.metadata.deletion_timestamp is not None:
            return False
        made = seconds_of(job.metadata.creation_timestamp) or 0.0
        pods = self._pods.owned_by(job.metadata.namespace or "", job.metadata.uid)
        return made + _PATIENCE <= self._clock.now() and all(pod.status.phase in _ENDED for pod in pods)

    async def _ask(self, job: Job) -> str | None:
        select = f"regarding.uid={job.metadata.uid},reason=FailedCreate"
        try:
            events = await self._client.list(EVENTS, job.metadata.namespace, field_selector=select)
        except ApiError:  # it only explains
            return None
        return newest_refusal(events, job.metadata.name)


def newest_refusal(events: Iterable[Mapping[str, Any]], job: str) -> str | None:
    """What the newest of these events says, without the pod's name, which is another at each try."""
    newest = max(events, key=_last_seen, default=None)
    if newest is None:
        return None
    return re.sub(rf'"{re.escape(job)}-[a-z0-9]+"', f'"{job}-…"', _BEFORE.sub("", str(newest.get("note") or "")))


def _last_seen(event: Mapping[str, Any]) -> float:
    series = event.get("series")
    times = (
        series.get("lastObservedTime") if isinstance(series, Mapping) else None,
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
    )
    return next((seconds for text in times if (seconds := seconds_of(text)) is not None), 0.0)
