"""What a PodGroup, its pods and a Queue should say after a cycle.

Phases follow Volcano's rule (reference: PodGroup phase at session close) without its flapping: a gang that is being
completed keeps the phase it has. A condition is true or false, never left over (P6).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from muster.scheduler.eligibility import all_held_back, impossible, obstacle_to_placement
from muster.scheduler.job import JobInfo
from muster.scheduler.outcome import PodGroupStatus, QueueStatus
from muster.scheduler.queue import QueueInfo
from muster.scheduler.reasons import Code, Reason, ReasonClass, describe, dominant
from muster.scheduler.restore import SCHEDULED, UNSCHEDULABLE
from muster.scheduler.specs import Condition, Phase, PodVerdict, TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.session import Session

NOT_ENOUGH_RESOURCES = "NotEnoughResources"
_COUNTED = (TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
READY = "tasks in gang are ready to be scheduled"
TURN = Reason(Code.WAITING_FOR_TURN)


def waits(job: JobInfo) -> bool:
    """Whether the gang, or an extra member of it, still wants a place."""
    if job.phase is Phase.COMPLETED and not job.pending:
        return False
    if job.pending or job.companions_pending() or _queue_is_missing(job):
        return True
    return not job.is_ready() and not _only_leaving(job)


def _queue_is_missing(job: JobInfo) -> bool:
    """A PodGroup of which nothing is known but that its queue does not exist: it is not done, whatever its minimum."""
    return job.spec is not None and job.queue.spec is None and not job.tasks


def find_reason(session: Session, job: JobInfo) -> Reason | None:
    """The one dominant reason why the gang waits, None when it does not."""
    if not waits(job):
        return None
    findings = list(session.findings.get(job.key, ()))
    obstacle = obstacle_to_placement(session, job)
    findings += [obstacle] if obstacle else []
    never = impossible(session, job)
    if session.cache.note_never(job, never):
        # Members that were placed in this cycle left others that can't be. Parts are worked out when a cycle begins.
        session.cache.relief.queues.update(job.queue.lineage)
    findings += [never] if never else []
    findings += _undelegated(session, job)
    if not findings:
        held = all_held_back(job)
        if held is not None:
            return held
    found = dominant(findings) or TURN
    if found.code is Code.LARGER_THAN_EVERY_NODE and not job.wanting_nodes:
        # No place was looked for, since members are missing too: without larger nodes it will never be.
        large = (task for task in job.pending.values() if not session.fits_an_empty_node(task.shape))
        job.wanting_nodes = {task.shape.id: 0 for task in large}
    if found.code is Code.NOT_ENOUGH_NODES and session.holds.of(job) is not None:
        return replace(found, detail="room is being held for it")
    return found


def _undelegated(session: Session, job: JobInfo) -> list[Reason]:
    """A pod with claims that only the default scheduler could have allocated, found whether nodes were asked or not."""
    for task in job.pending.values():
        if task.shape.devices is not None and not task.shape.devices.delegated:
            hurdle = session.framework.judge.hurdle(task.shape)
            return [] if hurdle is None else [replace(hurdle, member=task.spec.name)]
    return []


def next_phase(job: JobInfo, *, unschedulable: bool) -> Phase:
    """The phase that the members' states make."""
    running = job.count(TaskStatus.RUNNING)
    finished = job.count(TaskStatus.SUCCEEDED) + job.count(TaskStatus.FAILED)
    alive = job.count(TaskStatus.PENDING) + job.placed
    if job.phase is Phase.COMPLETED and not alive:
        return Phase.COMPLETED
    if _queue_is_missing(job):
        return job.phase
    if running and unschedulable:
        return Phase.UNKNOWN
    scheduled = running + job.count(TaskStatus.BOUND) + finished + _leaving(job)
    if scheduled >= job.min_member and (scheduled or not alive):
        if scheduled > finished:
            return Phase.RUNNING
        if not alive or (job.is_ready() and not job.placed):
            return Phase.COMPLETED
    if job.phase is Phase.INQUEUE or (job.is_ready() and job.placed and job.phase is not Phase.PENDING):
        return job.phase if job.phase is not Phase.COMPLETED else Phase.INQUEUE
    return Phase.PENDING


def _leaving(job: JobInfo) -> int:
    """Members that are leaving a node."""
    if not job.count(TaskStatus.RELEASING):
        return 0
    return sum(
        1
        for task in job.tasks.values()
        if task.status is TaskStatus.RELEASING and task.node is not None and not job.is_companion(task)
    )


def _only_leaving(job: JobInfo) -> bool:
    """A gang that is ending: what is missing is leaving, and nothing waits to replace it."""
    leaving = _leaving(job)
    if not leaving or job.count(TaskStatus.PENDING):
        return False
    scheduled = job.count(TaskStatus.RUNNING) + job.count(TaskStatus.BOUND) + leaving
    scheduled += job.count(TaskStatus.FAILED) + job.count(TaskStatus.SUCCEEDED)
    return scheduled >= job.min_member


def update_status(session: Session, job: JobInfo) -> PodGroupStatus:
    """Bring phase and conditions up to date and put the whole status together."""
    has_nodes = job.is_ready() and job.ready > 0
    complaint = None if has_nodes else _complaint(job)
    _enter_phase(session, job, next_phase(job, unschedulable=complaint is not None))
    job.conditions = _conditions(session, job, complaint, has_nodes=has_nodes)
    counts = [job.count(status) for status in _COUNTED]
    if job.companion_roles:
        pods = [task.status for task in job.tasks.values() if job.is_companion(task)]
        counts = [count + pods.count(status) for count, status in zip(counts, _COUNTED, strict=True)]
    return PodGroupStatus(
        phase=job.phase,
        conditions=job.conditions,
        running=counts[0],
        succeeded=counts[1],
        failed=counts[2],
        reason=job.reason,
        companions={role: task.node for role, task in sorted(job.placeholders.items()) if task.node is not None},
        broken_since=job.broken_since,
        minimum_met=job.held_min if job.placed else None,
    )


def _complaint(job: JobInfo) -> Reason | None:
    """What the Unschedulable condition says. A PodGroup whose pods are still being made does not complain yet."""
    reason = job.reason
    if reason is not None and not job.tasks and reason.reason_class is ReasonClass.INCOMPLETE:
        return None
    return reason


def _enter_phase(session: Session, job: JobInfo, phase: Phase) -> None:
    if phase is not job.phase:
        job.phase = phase
        session.cache.unsettle(job)
        session.look_again = session.look_again or (phase is Phase.PENDING and waits(job))
    if job.is_ready() or job.phase is not Phase.INQUEUE:
        if job.reservation_expired:
            session.cache.unsettle(job)
        job.inqueue_since, job.reservation_expired = None, False


def _conditions(session: Session, job: JobInfo, complaint: Reason | None, *, has_nodes: bool) -> tuple[Condition, ...]:
    conditions = list(job.conditions)
    if complaint is not None:
        text = describe(complaint)
        if job.members and complaint.reason_class is not ReasonClass.INCOMPLETE:
            text = f"{max(1, job.min_member - job.ready)}/{job.members} tasks in gang unschedulable: {text}"
        _put(conditions, Condition(UNSCHEDULABLE, True, NOT_ENOUGH_RESOURCES, text), session.now)
    else:
        _clear(conditions, UNSCHEDULABLE, session.now)
    if has_nodes:
        _put(conditions, Condition(SCHEDULED, True, READY), session.now)
    elif job.phase is not Phase.COMPLETED:
        _clear(conditions, SCHEDULED, session.now)
    return tuple(conditions)


def _put(conditions: list[Condition], wanted: Condition, now: float) -> None:
    """Replace the condition of that type in place, or append it."""
    for position, old in enumerate(conditions):
        if old.type == wanted.type:
            since = old.last_transition if old.status == wanted.status else now
            conditions[position] = _dated(wanted, since)
            return
    conditions.append(_dated(wanted, now))


def _clear(conditions: list[Condition], kind: str, now: float) -> None:
    if any(old.type == kind and old.status for old in conditions):
        _put(conditions, Condition(kind, False), now)


def _dated(condition: Condition, since: float) -> Condition:
    return Condition(condition.type, condition.status, condition.reason, condition.message, since)


def pod_verdicts(job: JobInfo) -> Iterator[tuple[str, PodVerdict]]:
    """What each waiting pod should say, where there is news in it.

    That other numbers stand in the same message is none: they change with every gang that comes or goes, and a gang's
    own with every pod that is made.
    """
    reason = job.reason
    text, gist = (describe(reason), reason.gist) if reason is not None else ("", ())
    helped = reason is not None and reason.more_nodes_help
    fitting = dict(job.wanting_nodes)
    for task in sorted(job.pending.values(), key=lambda each: each.order):
        if not task.spec.ours:
            continue
        unschedulable = helped and not task.held_back and task.shape.id in fitting
        if unschedulable and fitting[task.shape.id] > 0:
            fitting[task.shape.id] -= 1
            unschedulable = False
        verdict = PodVerdict("Pending", "Unschedulable" if unschedulable else "", text, task.nominated or "", gist)
        said, task.verdict = task.verdict, verdict
        if said is None or verdict.is_news_after(said):
            yield task.key, verdict


def queue_status(session: Session, queue: QueueInfo) -> QueueStatus:
    """What the queue and those below it use, what it deserves, and what is wrong with it."""
    allocated = queue.subtree.allocated.clone()
    standing = session.framework.queue_standing(session, queue)
    if standing is None:
        return QueueStatus(allocated, problem=queue.fault)
    return QueueStatus(allocated, standing.deserved, standing.share, standing.overused, queue.fault)
