"""What a PodGroup's stored status says about the past.

All state is in the API server (P5): after a restart the gang's phase, conditions and annotations come back from
there, and from them what the gang was when we last looked. A PodGroup that is made while we are at work has no past
with us: whoever makes it can write all of this into it, and would take quota (Inqueue) or a turn by it.

A gang that runs below minMember is broken, unless it was minMember that rose (a cluster scaled up): then the members
that ran before are no fragment. So what it met is noted with its bindings. How many are counted as running tells
nothing of that: members that have a node may not run yet.
"""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from muster.scheduler.outcome import PodGroupStatus
from muster.scheduler.specs import Phase, PodGroupSpec

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo

UNSCHEDULABLE = "Unschedulable"
SCHEDULED = "Scheduled"


def restore_state(job: JobInfo, spec: PodGroupSpec, *, believed: bool) -> None:
    """Take the state of a PodGroup that is seen for the first time, if `believed`, from its status and annotations."""
    job.published = status_in(spec)
    job.held_min = job.min_member
    if not believed:
        return
    job.phase = spec.phase or Phase.PENDING
    job.conditions = spec.conditions
    job.broken_since = spec.broken_since
    job.wait = spec.wait
    job.held_min = job.min_member if spec.minimum_met is None else spec.minimum_met
    if job.phase is Phase.INQUEUE:
        waited = [each.last_transition for each in spec.conditions if each.type == UNSCHEDULABLE and each.status]
        job.inqueue_since = waited[0] if waited and waited[0] > 0 else None


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
        minimum_met=spec.minimum_met,
    )


_STATUS: Final = frozenset(
    {
        "phase",
        "conditions",
        "running",
        "succeeded",
        "failed",
        "companion_nodes",
        "broken_since",
        "minimum_met",
        "wait",
    }
)
_asked: Final = attrgetter(*(each.name for each in fields(PodGroupSpec) if each.name not in _STATUS))
"""All of a PodGroup but its status and what we note on it; each write of ours comes back and is looked at."""


def differs_in_status_only(spec: PodGroupSpec, old: PodGroupSpec) -> bool:
    """Whether two versions of a PodGroup ask for the same."""
    return _asked(spec) == _asked(old)
