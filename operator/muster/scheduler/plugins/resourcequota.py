"""Admits a gang only if its namespace's ResourceQuotas have room for its minimum.

The API server counts pods in a quota when they are made. A gang whose pods exist is in there already and is not
counted twice; one that was admitted and whose pods are still to be made is not, so its minimum is kept for it. Both
sums are made once a cycle, and only if a gang of such a namespace asks to be admitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin, Vote
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.resources import Resources, total
from muster.scheduler.specs import Phase, ResourceQuotaSpec

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session

_REQUESTS, _COUNT_OF_PODS = "requests.", "count/pods"


class ResourceQuotas(Plugin):
    """Volcano's `resourcequota`."""

    name: ClassVar[str] = "resourcequota"

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self._promised: defaultdict[str, Resources] | None = None
        self._existing: defaultdict[str, Resources] | None = None
        """By namespace; None before anybody has asked in this cycle."""

    def register(self, points: ExtensionPoints) -> None:
        """Votes on admission."""
        points.add("job_enqueueable", self._enqueueable)
        points.add("job_enqueued", self._enqueued)
        points.add("kinds", _namespace)

    def on_session_open(self, session: Session) -> None:  # noqa: ARG002
        """What was counted in the last cycle may have changed."""
        self._promised = self._existing = None

    def _enqueueable(self, session: Session, job: JobInfo) -> Vote:
        quotas = session.cache.resource_quotas.get(_namespace(job))
        minimum = job.min_resources
        if not quotas or minimum is None:
            return True
        promised = self._promised_in(session, _namespace(job))
        for _, quota in sorted(quotas.items()):
            for name, limit in _limits(quota, minimum):
                resource = _counted(name)
                used = quota.used.get(name, 0) + promised.get(resource)
                asked = minimum.get(resource)
                if used + asked <= limit:
                    continue
                if used + asked - self._counted_already(session, job, quota, name) > limit:
                    return _refusal(quota, resource, asked, used, limit)
        return True

    def _counted_already(self, session: Session, job: JobInfo, quota: ResourceQuotaSpec, name: str) -> int:
        """How much of what the quota counts is the gang's own: what its pods ask for, as far as others leave it."""
        dimension = _counted(name)
        own = _asked_by_pods(job).get(dimension)
        if own == 0:
            return 0
        others = self._existing_in(session, quota.namespace).get(dimension) - own
        return max(0, min(own, quota.used.get(name, 0) - others))

    def _existing_in(self, session: Session, namespace: str) -> Resources:
        """What all known pods of the namespace ask for."""
        if self._existing is None:
            self._existing = defaultdict(Resources)
            for task in session.cache.tasks.values():
                if task.spec.namespace in session.cache.resource_quotas and not task.status.finished:
                    self._existing[task.spec.namespace].add(task.request)
        return self._existing[namespace]

    def _promised_in(self, session: Session, namespace: str) -> Resources:
        """What admitted gangs of the namespace will ask for beyond the pods that they have."""
        if self._promised is None:
            self._promised = defaultdict(Resources)
            for job in session.cache.jobs.values():
                if _namespace(job) in session.cache.resource_quotas:
                    self._promised[_namespace(job)].add(_still_to_be_made(job))
        return self._promised[namespace]

    def _enqueued(self, _session: Session, job: JobInfo) -> None:
        if self._promised is not None:
            self._promised[_namespace(job)].add(_still_to_be_made(job))


def _namespace(job: JobInfo) -> str:
    return job.key.partition("/")[0]


def _asked_by_pods(job: JobInfo) -> Resources:
    return total(task.request for task in job.tasks.values() if not task.status.finished)


def _still_to_be_made(job: JobInfo) -> Resources:
    minimum = job.min_resources
    if minimum is None or job.phase is not Phase.INQUEUE or job.reservation_expired or job.never is not None:
        return Resources()
    return minimum.exceeded(_asked_by_pods(job))


def _limits(quota: ResourceQuotaSpec, minimum: Resources) -> Iterator[tuple[str, int]]:
    """The limits that concern what is asked for."""
    for name, limit in sorted(quota.hard.items()):
        if minimum.get(_counted(name)) > 0:
            yield name, limit


def _counted(name: str) -> str:
    """The resource that a quota's name counts: `requests.cpu` is `cpu`."""
    if name == _COUNT_OF_PODS:
        return "pods"
    return name.removeprefix(_REQUESTS)


def _refusal(quota: ResourceQuotaSpec, resource: str, asked: int, used: int, limit: int) -> Reason:
    return Reason(
        Code.NAMESPACE_QUOTA,
        resource=resource,
        requested=asked,
        used=used,
        free=max(0, limit - used),
        limit=limit,
        detail=quota.key,
        # CLUSTER: what is in the way may be promised to a gang of another queue.
        wakes=(Wake.QUEUE, Wake.CLUSTER),
    )
