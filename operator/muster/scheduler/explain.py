"""From a failed attempt to reasons with numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from muster.scheduler.buckets import Bucket, fits
from muster.scheduler.job import JobInfo
from muster.scheduler.judge import may_use
from muster.scheduler.placing import Attempt, find_places, gang_key, required_first
from muster.scheduler.queue import capability_reason
from muster.scheduler.reasons import Code, NearMiss, Reason, ReasonClass, Wake
from muster.scheduler.resources import PODS, Resources, format_amount
from muster.scheduler.task import Shape, TaskInfo

if TYPE_CHECKING:
    from muster.scheduler.session import Session


MILLI = 1000
BESIDE_MEMBERS = "beside the gang's other members"


def refusal_reasons(session: Session, job: JobInfo, attempt: Attempt) -> list[Reason]:
    """Why the attempt failed, from the job's point of view (a gang of the same shapes may have made it)."""
    if attempt.reserved is not None:
        return [attempt.reserved]
    reasons = [_for_the_gang(session, job, attempt, objection) for objection in attempt.denied.values()]
    own = _own_tasks(session, job, attempt) if attempt.short else {}
    reasons += [_no_room(session, job, attempt, own.get(shape, task)) for shape, task in attempt.short.items()]
    job.wanting_nodes.update(attempt.wanting_nodes())
    return reasons


def _own_tasks(session: Session, job: JobInfo, attempt: Attempt) -> dict[int, TaskInfo]:
    """By shape, the first of the job's own tasks that would find no place behind those that did."""
    members = [task for task in job.pending.values() if task.schedulable and not job.is_companion(task)]
    passed = Counter(attempt.found)
    first: dict[int, TaskInfo] = {}
    for task in [*required_first(job, session.sort_tasks(members)), *job.companions_pending()]:
        shape = task.shape.id
        if passed[shape] > 0:
            passed[shape] -= 1
        else:
            first.setdefault(shape, task)
    return first


def waiting_for_release(job: JobInfo, attempt: Attempt) -> Reason:
    """Every member has a place, some of them once leaving pods are gone; of a gang that is ready, an extra one has."""
    ready = job.is_ready()
    return Reason(
        Code.WAITING_FOR_RELEASE,
        have=job.ready if ready else job.min_member - attempt.need + attempt.placed,
        need=job.ready + job.waiting if ready else job.min_member,
        wakes=(Wake.NODES, Wake.GANG),
    )


def _for_the_gang(session: Session, job: JobInfo, attempt: Attempt, objection: Reason) -> Reason:
    """A quota objection speaks of one task beside others placed in trial; say it for all that the gang needs."""
    if objection.reason_class is not ReasonClass.QUOTA:
        return objection
    members = [task for task in job.pending.values() if task.schedulable and not job.is_companion(task)]
    needed = [*required_first(job, session.sort_tasks(members))[: attempt.need], *job.companions_pending()]
    whole = session.allocatable(job.queue, session.charge_of_all(needed)) if len(needed) > 1 else None
    return whole if whole is not None else objection


def _no_room(session: Session, job: JobInfo, attempt: Attempt, task: TaskInfo) -> Reason:
    have, need = _counts(job, attempt)
    survey = session.survey_nodes(task.shape)
    if_empty = most_if_empty(session, job) if have is not None else None
    return replace(survey, have=have, need=need, member=task.spec.name, have_if_empty=if_empty)


def most_if_empty(session: Session, job: JobInfo) -> int | None:
    """How many members the nodes could hold at most if nothing else ran, where that is too few; None where it is not.

    Each kind of member is counted as if it were alone, so that more may have no place.
    """
    if job.ready or not session.cache.index.makes:
        return None
    kinds = Counter(task.shape for task in job.pending.values() if not job.is_companion(task))
    most = sum(min(count, session.most_of(shape)) for shape, count in kinds.items())
    return most if most < job.min_member <= kinds.total() else None


def usable(session: Session, shapes: Collection[Shape], dimension: str) -> int:
    """What the nodes have of it that some of these may use; all that there is where none are given."""
    index = session.cache.index
    views = [index.view(shape) for shape in shapes]
    if len(views) > 1:  # a shape that is new may have told makes apart
        views = [index.view(shape) for shape in shapes]
    return sum(
        len(make.nodes) * make.sample.allocatable.get(dimension)
        for make in index.makes.values()
        if not views or any(may_use(view.refusal(make)) for view in views)
    )


def most_of(session: Session, shape: Shape) -> int:
    """How many pods of the shape the nodes could hold if nothing else ran, and none were cordoned or not ready."""
    index = session.cache.index
    view = index.view(shape)
    found = 0
    for make in index.makes.values():
        if may_use(view.refusal(make)):
            found += len(make.nodes) * _capacity(shape, make.sample.allocatable)
    return found


def _counts(job: JobInfo, attempt: Attempt) -> tuple[int | None, int | None]:
    """Members that have a place, and how many are to have one: of a gang that has its minimum all that there are."""
    if job.is_ready() and job.ready:
        waiting = sum(task.schedulable and not job.is_companion(task) for task in job.pending.values())
        return job.ready + attempt.placed - attempt.companions, job.ready + waiting
    if not job.min_member:
        return None, None
    return max(0, job.min_member - attempt.need) + attempt.placed - attempt.companions, job.min_member


def survey_nodes(session: Session, shape: Shape) -> Reason:
    """What each node lacks for the shape, and which comes closest."""
    index = session.cache.index
    view = index.view(shape)
    lacking: Counter[str] = Counter()
    full, crowded = _Shortage(shape), _Shortage(shape)
    for bucket in index.filled_buckets():
        refused = view.refusal(bucket.make)
        if refused is not None:
            lacking[refused] += len(bucket.members)
            continue
        short = _short_of(shape, bucket.idle)
        if short:
            lacking[_words(short)] += len(bucket.members)
            full.add(bucket, bucket.idle, short, len(bucket.members))
            continue
        why, taken = _why_not(session, shape, bucket)
        lacking.update(why)
        if taken:
            left = _left_by_members(shape, bucket.idle)
            short = _short_of(shape, left)
            lacking[f"{_words(short)} {BESIDE_MEMBERS}"] += taken
            crowded.add(bucket, left, short, taken)
    resource, requested, used, free, limit, roomiest = (full if full.dimensions else crowded).amounts()
    devices = session.objections(shape).devices
    if resource is None and devices is not None:
        resource, requested = devices.resource, (devices.asked or devices.total) * MILLI
        used, free, limit = (devices.total - devices.free) * MILLI, devices.free * MILLI, devices.total * MILLI
    nearest = min((each for each in (full.nearest, crowded.nearest) if each is not None), default=None)
    return Reason(
        Code.NOT_ENOUGH_NODES,
        resource=resource,
        requested=requested,
        used=used,
        free=free,
        limit=limit,
        node=roomiest,
        nodes=tuple(sorted(lacking.items(), key=lambda item: (-item[1], item[0]))),
        near_miss=NearMiss(nearest[1], nearest[2]) if nearest else None,
        wakes=(Wake.NODES,),
        more_nodes_help=True,
    )


class _Shortage:
    """Nodes that have too little of something: of what most do, which has most of it, and which comes closest."""

    __slots__ = ("_roomiest", "_shape", "dimensions", "nearest")

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._roomiest: dict[str, tuple[Bucket, Resources]] = {}
        self.dimensions: Counter[str] = Counter()
        self.nearest: tuple[float, str, str] | None = None

    def add(self, bucket: Bucket, room: Resources, short: list[str], nodes: int) -> None:
        """Nodes of the bucket, with this room, that are short of these dimensions."""
        self.dimensions[short[0]] += nodes
        for name in short:
            candidate = (bucket, room)
            self._roomiest[name] = max(self._roomiest.get(name, candidate), candidate, key=partial(_roominess, name))
        near = (_distance(self._shape, room, short), bucket.first() or "", _lacks(self._shape, room, short))
        self.nearest = near if self.nearest is None else min(self.nearest, near)

    def amounts(self) -> tuple[str | None, int | None, int | None, int | None, int | None, str | None]:
        """The dimension that is short on most nodes, what is asked of it; used, free and in all on a node; which."""
        resource = min(self.dimensions, key=lambda name: (-self.dimensions[name], name), default=None)
        if resource is None:
            return None, None, None, None, None, None
        bucket, room = self._roomiest[resource]
        return resource, self._shape.init_request.get(resource), *_amounts(bucket, room, resource), bucket.first()


def _why_not(session: Session, shape: Shape, bucket: Bucket) -> tuple[Counter[str], int]:
    """Why nodes that have the resources won't do for what is there; and how many the gang itself has filled."""
    nodes = len(bucket.members)
    refused = session.framework.judge.refusal_now(shape, next(iter(bucket.members.values())))
    if refused is not None:
        return Counter({refused: nodes}), 0
    if shape.plain:
        return Counter(), nodes
    check = session.framework.judge.check(shape, later=False)
    noted = session.objections(shape).nodes
    found = (noted.get(name) or check(node) for name, node in bucket.members.items())
    why = Counter(each for each in found if each is not None)
    return why, nodes - why.total()


def _left_by_members(shape: Shape, idle: Resources) -> Resources:
    """What is left on a node that holds as many members of this shape as it can (one at least)."""
    return idle.minus(_with_slot(shape).scaled(_capacity(shape, idle), 1))


def _capacity(shape: Shape, room: Resources) -> int:
    """How many pods of the shape fit there one after the other: each needs a little more to start than to run."""
    if not fits(shape, room):
        return 0
    first, each = shape.init_request, _with_slot(shape)
    return 1 + min(
        (room.get(name) - first.get(name)) // each.get(name) for name in each.dimensions() if each.get(name) > 0
    )


def _with_slot(shape: Shape) -> Resources:
    each = shape.request.clone()
    each.scalars.setdefault(PODS, 1)
    return each


def _roominess(resource: str, there: tuple[Bucket, Resources]) -> tuple[int, int]:
    bucket, room = there
    return room.get(resource), bucket.make.sample.allocatable.get(resource)


def _amounts(bucket: Bucket, room: Resources, resource: str) -> tuple[int, int, int]:
    """Used, free and in all, on a node."""
    limit, free = bucket.make.sample.allocatable.get(resource), room.get(resource)
    return limit - free, max(0, free), limit


def _short_of(shape: Shape, idle: Resources) -> list[str]:
    """The dimensions in which an idle amount is too small."""
    needs = shape.init_request
    if shape.best_effort:
        return [PODS] if needs.get(PODS) > idle.get(PODS) else []
    return [name for name in needs.dimensions() if needs.get(name) > idle.get(name)]


def _words(short: list[str]) -> str:
    if short == [PODS]:
        return "node(s) pod number exceeded"
    return "Insufficient " + " and ".join(short)


def _distance(shape: Shape, idle: Resources, short: list[str]) -> float:
    needs = shape.init_request
    return max((needs.get(name) - idle.get(name)) / max(1, needs.get(name)) for name in short)


def _lacks(shape: Shape, idle: Resources, short: list[str]) -> str:
    needs = shape.init_request
    return ", ".join(f"{name} {format_amount(name, needs.get(name) - idle.get(name))}" for name in short)


def _capped(session: Session, job: JobInfo, pending: list[TaskInfo]) -> Reason | None:
    """The queue's cap, when even with more nodes it would keep the gang waiting."""
    need = max(1, job.min_member - job.ready)
    members = sorted((task for task in pending if not job.is_companion(task)), key=lambda each: each.order)
    wanted = session.charge_of_all([*members[:need], *job.companions_pending()])
    capped = session.over_capability(job.queue, wanted)
    return capability_reason(*capped, wanted) if capped is not None else None


def look_beyond_quota(session: Session, job: JobInfo) -> None:
    """Where only quota was asked, ask the nodes too: when they are full as well and more would help, it is room.

    A cluster (not one without any nodes) that is promised stays the reason, for quota ranks before room, and tells of
    the nodes besides.
    """
    findings = session.findings.get(job.key, [])
    quota = [each for each in findings if each.reason_class is ReasonClass.QUOTA]
    pending = [task for task in job.pending.values() if task.schedulable]
    if not quota or not all(each.more_nodes_help for each in quota) or not pending:
        return
    capped = _capped(session, job, pending)
    if capped is not None:
        session.findings[job.key] = [capped, *findings]
        return
    key = gang_key(job)
    survey = session.surveys.get(key)
    if survey is None:
        survey = session.surveys[key] = find_places(session, job, session.sort_tasks(pending), quota=False)
        survey.statement.discard()
    if not survey.short:
        return
    room = refusal_reasons(session, job, survey)
    wakes = tuple(sorted({wake for each in (*quota, *room) for wake in each.wakes}, key=lambda wake: wake.name))
    session.findings[job.key] = [each for each in findings if each not in quota]
    promised = next((each for each in quota if each.code is Code.CLUSTER_OVERCOMMIT), None)
    if promised is not None and session.cache.index.makes:
        room = [_with_nodes(promised, room)]
    session.find(job, *[replace(each, wakes=wakes) for each in room])


def _with_nodes(promised: Reason, room: list[Reason]) -> Reason:
    full = next((each for each in room if each.code is Code.NOT_ENOUGH_NODES), None)
    if full is None:
        return promised
    return replace(
        promised,
        need=full.need if full.have_if_empty is not None else None,
        have_if_empty=full.have_if_empty,
        member=full.member,
        nodes=full.nodes,
        near_miss=full.near_miss,
    )
