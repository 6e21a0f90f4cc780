"""What a PodGroup's stored status says about the past.

All state is in the API server (P5): after a restart the gang's phase, conditions and `broken-since` come back from
there, and from them what the gang was when we last looked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from muster.scheduler.outcome import PodGroupStatus
from muster.scheduler.specs import Phase, PodGroupSpec

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo

UNSCHEDULABLE = "Unschedulable"
SCHEDULED = "Scheduled"


def restore_state(job: JobInfo, spec: PodGroupSpec) -> None:
    """Take the state of a PodGroup that is seen for the first time from its status and annotations."""
    job.phase = spec.phase or Phase.PENDING
    job.conditions = spec.conditions
    job.published = status_in(spec)
    job.broken_since = spec.broken_since
    job.wait = spec.wait
    job.held_min = _minimum_last_met(job, spec)
    if job.phase is Phase.INQUEUE:
        waited = [each.last_transition for each in spec.conditions if each.type == UNSCHEDULABLE and each.status]
        job.inqueue_since = waited[0] if waited and waited[0] > 0 else None


def _minimum_last_met(job: JobInfo, spec: PodGroupSpec) -> int:
    """The minimum that the gang met when its status was written.

    A gang that runs below minMember is broken, unless it was minMember that rose (a cluster scaled up): then the
    members that ran before are no fragment. A status that counted running members and no `broken-since` tell; one
    that counts none tells nothing: the members were not running yet, or whoever wrote it counted nobody.
    """
    was_running = job.phase in (Phase.RUNNING, Phase.UNKNOWN)
    if was_running and spec.broken_since is None and spec.running:
        return min(job.min_member, spec.running)
    return job.min_member


def status_in(spec: PodGroupSpec) -> PodGroupStatus:
    """The status as it is stored."""
    return PodGroupStatus(
        phase=spec.phase or Phase.PENDING,
        conditions=spec.conditions,
        running=spec.running or 0,
        succeeded=spec.succeeded or 0,
        failed=spec.failed or 0,
        companions=spec.companion_nodes,
        broken_since=spec.broken_since,
    )


def differs_in_status_only(spec: PodGroupSpec, old: PodGroupSpec) -> bool:
    """Whether two versions of a PodGroup ask for the same."""
    return _without_status(spec) == _without_status(old)


def _without_status(spec: PodGroupSpec) -> PodGroupSpec:
    return replace(
        spec,
        phase=None,
        conditions=(),
        running=None,
        succeeded=None,
        failed=None,
        companion_nodes={},
        broken_since=None,
        wait=None,
    )
