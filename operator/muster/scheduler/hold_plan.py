"""For which gangs room is held, and where.

One gang a queue: of those that have waited too long the one of the highest priority that has waited longest. The gang
that has waited longest of all chooses first, so no two holds count on the same room and each can be met by itself. For
a gang that asks for more than its queue's quota will ever be nothing is held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.scheduler.forecast import FREE, UNTIMED, Forecast, Place, expected_end, total_price
from muster.scheduler.placing import gang_key, missing_of_roles, required_first
from muster.scheduler.reasons import Reason
from muster.scheduler.resources import Resources, dominant_share, total
from muster.scheduler.specs import TaskStatus
from muster.scheduler.waiting import starves, waits_since

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

_Turn = tuple[float, tuple[float, str, str]]
Places = list[tuple["TaskInfo", str]]


@dataclass(slots=True, eq=False)
class Hold:
    """What is held for one gang.

    `need` is what the gang asks for in all, `amounts` what it gets on each node, `draining` the nodes that have to
    become free first. `until` (Unix seconds) is when it can begin at the latest, None when nobody knows. `beside` is
    what was started, by uid, since the room is held.
    """

    job: JobInfo
    shape_key: object
    need: Resources
    places: Places
    amounts: dict[str, Resources]
    draining: frozenset[str]
    until: float | None
    beside: set[str] = field(default_factory=set)

    def keeps_the_same(self, other: Hold | None) -> bool:
        """Whether the two keep the same room."""
        if other is None or other.job is not self.job or other.until != self.until:
            return False
        return other.amounts == self.amounts and other.draining == self.draining


def note_starved(session: Session, looked_at: Iterable[JobInfo]) -> None:
    """Keep count of the gangs that have waited too long."""
    starved = session.cache.starved
    for job in looked_at:
        if starves(session, job):
            starved[job.key] = job
        else:
            starved.pop(job.key, None)


def plan_holds(session: Session) -> None:
    """Bring the cache's holds up to date; room that is held no longer may help those who wait for it."""
    cache = session.cache
    if not cache.starved and not cache.holds:
        return
    chosen = _first_of_each_queue(cache.starved.values(), session.now)
    wishes = [(job, tasks) for job in chosen if (tasks := _least_members(session, job)) is not None]
    quotas = [session.allocatable(job.queue, session.charge_of_all(tasks)) for job, tasks in wishes]
    seen = (cache.index.version, [(job.key, gang_key(job)) for job, _ in wishes], quotas)
    if seen == cache.holds_seen and all(hold.until is None or hold.until > session.now for hold in cache.holds):
        return
    cache.holds_seen = seen
    old = {hold.job.key: hold for hold in cache.holds}
    cache.holds = []
    taken: dict[str, Resources] = {}
    for (job, tasks), quota in zip(wishes, quotas, strict=True):
        hold = _hold(session, job, tasks, quota, taken, old.get(job.key))
        if hold is not None:
            cache.holds.append(hold)
            for name, amount in hold.amounts.items():
                taken[name] = taken[name].plus(amount) if name in taken else amount
    _tell_of_changes(session, old)


def _first_of_each_queue(starved: Iterable[JobInfo], now: float) -> list[JobInfo]:
    first: dict[str, tuple[int, _Turn, JobInfo]] = {}
    for job in starved:
        if job.is_ready():
            # The cycle before this one placed it; who is noted as starved was noted before that.
            continue
        entry = (-job.priority, (waits_since(job, now), job.age_order), job)
        known = first.get(job.queue.name)
        if known is None or entry[:2] < known[:2]:
            first[job.queue.name] = entry
    return [job for _, _, job in sorted(first.values(), key=lambda entry: entry[1])]


def _least_members(session: Session, job: JobInfo) -> list[TaskInfo] | None:
    """The members, in order, that would make the gang ready, and its companions; None when there are too few."""
    missing = missing_of_roles(job)
    need = max(job.min_member - job.ready, missing.total())
    waiting = [task for task in job.pending.values() if task.schedulable and not job.is_companion(task)]
    found = required_first(job, session.sort_tasks(waiting))[:need]
    enough = len(found) >= need and missing <= Counter(task.spec.role for task in found)
    return found + job.companions_pending() if enough else None


def _hold(
    session: Session,
    job: JobInfo,
    tasks: list[TaskInfo],
    quota: Reason | None,
    taken: dict[str, Resources],
    old: Hold | None,
) -> Hold | None:
    if quota is not None and (quota.requested is None or quota.limit is None or quota.requested > quota.limit):
        return None
    key = gang_key(job)
    whole = session.cache.total
    largest_first = sorted(tasks, key=lambda task: (-dominant_share(task.request, whole), task.order))
    places = Forecast(session, taken).places(largest_first)
    if old is not None and old.shape_key == key and old.places:
        # The places that it has stay, unless others are nearer: what has drained so far must not be given away.
        kept = Forecast(session, taken).prices(old.places)
        if kept is not None and (places is None or total_price(kept) <= total_price(places)):
            places = kept
    if places is None:
        return None
    hold = _keep(job, key, total(task.request for task in tasks), places)
    if quota is not None:
        end = _quota_end(session, job, quota)
        hold.until = None if end is None or hold.until is None else max(end, hold.until)
    if old is not None:
        hold.beside = {uid for uid in old.beside if _is_charged(session, uid)}
    return hold


def _is_charged(session: Session, uid: str) -> bool:
    task = session.cache.tasks.get(uid)
    return task is not None and (task.status.charged or task.status is TaskStatus.RELEASING)


def _keep(job: JobInfo, key: object, need: Resources, places: list[Place]) -> Hold:
    amounts: dict[str, Resources] = {}
    for place in places:
        amounts.setdefault(place.node, Resources()).add(place.task.request)
    draining = frozenset(place.node for place in places if place.price[0] != FREE)
    timed = all(place.price[0] != UNTIMED for place in places)
    until = max(place.price[1] for place in places) if timed else None
    return Hold(job, key, need, [(place.task, place.node) for place in places], amounts, draining, until)


def _quota_end(session: Session, job: JobInfo, quota: Reason) -> float | None:
    """When the queue's own pods that say when they end leave enough of the quota."""
    resource = quota.resource or ""
    if quota.queue != job.queue.name or quota.used is None or quota.limit is None or quota.requested is None:
        return None
    lacking = quota.used + quota.requested - quota.limit
    ends = []
    for other in job.queue.jobs.values():
        for task in other.tasks.values():
            end = expected_end(task, session.now) if task.status.charged or task.leaves else None
            if end is not None:
                ends.append((end, task.request.get(resource)))
    for end, freed in sorted(ends):
        lacking -= freed
        if lacking <= 0:
            return end
    return None


def _tell_of_changes(session: Session, old: dict[str, Hold]) -> None:
    cache = session.cache
    new = {hold.job.key: hold for hold in cache.holds}
    for key, hold in new.items():
        if key not in old:
            cache.touch(hold.job)  # it may have been parked with others that are not held for
    for key, before in old.items():
        if not before.keeps_the_same(new.get(key)):
            release(session, before)


def release(session: Session, hold: Hold) -> None:
    """What was held may help those who wait for it."""
    cache = session.cache
    cache.relief.queues.update(cache.queues)
    for name in hold.amounts:
        node = cache.nodes.get(name)
        if node is not None and node.spec is not None:
            cache.relief.nodes[name] = node
