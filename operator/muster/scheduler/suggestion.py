"""The smallest change with which a waiting gang would be placed now, found by asking the scheduler itself.

Three kinds of change are tried: another queue, fewer members, and a smaller member where one does not fit. A trial
gives the gang that form for as long as it takes to look for places, with the same plugins, quotas and held room as in
a cycle, and takes everything back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from muster.scheduler.eligibility import larger_than_queue, need_with, obstacle_to_placement
from muster.scheduler.parking import Relief
from muster.scheduler.placing import find_places, gang_key
from muster.scheduler.reasons import Code, Reason, ReasonClass
from muster.scheduler.resources import CPU, MEMORY, PODS, Resources, format_amount, total
from muster.scheduler.specs import Phase, PodGroupSpec
from muster.scheduler.suggested import AtMost, Suggestion
from muster.scheduler.task import TaskInfo

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.session import Session

Change = Callable[["JobInfo"], Suggestion]
"""What helps gangs that are alike, said of one of them."""
_STEPS = {CPU: 100, MEMORY: 64 * 1024**2}
"""In what steps a request is made smaller: 100m CPU, 64Mi memory, one of anything else."""


class Trials:
    """So many trials as are left, on the model of one session."""

    def __init__(self, session: Session, left: int) -> None:
        self.session = session
        self.left = left
        self.known: dict[object, Change | None] = {}
        self.at_most: dict[object, Mapping[str, Any] | None] = {}

    def fits(self, job: JobInfo) -> bool:
        """Whether the gang, in the form that it has now, would be admitted and placed."""
        self.left -= 1
        with self._counted(job):
            return self._fits(job)

    @contextmanager
    def _counted(self, job: JobInfo) -> Iterator[None]:
        """What can never be placed has no part in what its queue deserves: in another form it would have one."""
        never, cache = job.never, self.session.cache
        if never is None:
            yield
            return
        job.never = None
        cache.contribute(job)
        _share_out(self.session)
        try:
            yield
        finally:
            job.never = never
            cache.contribute(job)
            _share_out(self.session)

    def _fits(self, job: JobInfo) -> bool:
        session = self.session
        if obstacle_to_placement(session, job) is not None:
            return False
        applies = job.phase is Phase.PENDING and job.min_resources is not None
        if applies and session.framework.job_enqueueable(session, job) is not None:
            return False
        if session.framework.overused(session, job.queue):
            return False
        tasks = [task for task in job.pending.values() if task.schedulable and not job.is_companion(task)]
        attempt = session.holds.place(job, partial(find_places, session, job, session.sort_tasks(tasks)))
        attempt.statement.discard()
        return attempt.complete

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Leave the model as it was, what the next cycle is told of it included."""
        cache = self.session.cache
        changed, unsettled, version = dict(cache.changed), dict(cache.unsettled), cache.index.version
        relief, holds = cache.relief, cache.holds
        cache.relief = Relief()
        self.session.holds.begin()
        try:
            yield
        finally:
            self.session.holds.end()
            cache.settle()
            cache.changed, cache.unsettled, cache.index.version = changed, unsettled, version
            cache.relief, cache.holds = relief, holds


def suggest(trials: Trials, job: JobInfo, reason: Reason) -> Suggestion | None:
    """What would have the gang placed now; None when nothing of what is tried does, or too much has been tried."""
    useful = (ReasonClass.NEVER, ReasonClass.QUOTA, ReasonClass.ROOM, ReasonClass.RESERVED)
    if reason.reason_class not in useful or job.spec is None or job.is_ready():
        return None
    # Of gangs that are alike one may have been admitted already.
    key = (gang_key(job), job.phase, reason.code, reason.resource, trials.session.holds.of(job) is None)
    if key not in trials.known:
        if trials.left <= 0:
            return None
        with trials.undone():
            trials.known[key] = _smallest_change(trials, job, reason)
    found = trials.known[key]
    now = found(job) if found is not None else None
    return _with_most(trials, job, reason, now, key) if reason.code is Code.LARGER_THAN_QUEUE else now


def _with_most(trials: Trials, job: JobInfo, reason: Reason, now: Suggestion | None, key: object) -> Suggestion | None:
    """The suggestion with the word of how many members the queue could hold at all."""
    if key not in trials.at_most:
        with trials.undone():
            trials.at_most[key] = _within_capability(trials, job)
    change = trials.at_most[key]
    if change is None:
        return now
    members = _members(change["minMember"])
    most = AtMost(members, f"{members} instead of {job.min_member}", change, others=bool(reason.used))
    return replace(now, at_most=most) if now is not None else Suggestion("", {}, most)


def _smallest_change(trials: Trials, job: JobInfo, reason: Reason) -> Change | None:
    if reason.reason_class is ReasonClass.QUOTA or reason.code is Code.LARGER_THAN_QUEUE:
        queue = _another_queue(trials, job)
        if queue is not None:
            found = Suggestion(f"in queue {queue.name} it would be placed now", {"queue": queue.name})
            return lambda _job: found
    fewer = _fewer_members(trials, job)
    smaller = _smaller_member(trials, job, reason)
    if fewer is not None and (smaller is None or fewer[0] >= smaller[0]):
        return fewer[1]
    return smaller[1] if smaller is not None else None


def _another_queue(trials: Trials, job: JobInfo) -> QueueInfo | None:
    own = job.queue
    for _, queue in sorted(trials.session.cache.queues.items()):
        if queue is own or queue.find_obstacle() is not None or trials.left <= 0:
            continue
        with _as_if_in(trials.session, job, queue):
            if trials.fits(job):
                return queue
    return None


@contextmanager
def _as_if_in(session: Session, job: JobInfo, queue: QueueInfo) -> Iterator[None]:
    own = job.queue
    _move(session, job, queue)
    try:
        yield
    finally:
        _move(session, job, own)


def _move(session: Session, job: JobInfo, queue: QueueInfo) -> None:
    """The plugins have to see it there: what a queue deserves depends on who asks in it."""
    session.cache.put_in_queue(job, queue)
    session.cache.contribute(job)
    job.shape_key = None
    _share_out(session)


def _share_out(session: Session) -> None:
    for plugin in session.framework.plugins:
        plugin.on_session_open(session)


def _fewer_members(trials: Trials, job: JobInfo) -> tuple[float, Change] | None:
    """The largest minimum with which it fits: what part of the gang that is, and in words."""
    members = _members_to_keep(trials, job)[0]
    found = _fewest_less(trials, job, lambda _count: trials.fits(job))
    if found is None:
        return None
    count, change = found
    text = f"with {_members(change['minMember'])} instead of {job.min_member} it would be placed now"
    said = Suggestion(text, change)
    return count / len(members), lambda _job: said


def _within_capability(trials: Trials, job: JobInfo) -> Mapping[str, Any] | None:
    """The largest minimum that its queue, and those above it, could hold if nobody else used them."""
    session, members = trials.session, _members_to_keep(trials, job)[0]

    def fits(count: int) -> bool:
        return larger_than_queue(session, job, need_with(session, job, members[:count])) is None

    found = _fewest_less(trials, job, fits)
    return found[1] if found is not None else None


def _fewest_less(trials: Trials, job: JobInfo, fits: Callable[[int], bool]) -> tuple[int, dict[str, Any]] | None:
    """How many members more than those that are placed the largest minimum has that fits, and the change to it.

    `fits` is asked while the gang has that form. Of each role that has a minimum one member stays: without its head a
    cluster is none.
    """
    members, least_of_all = _members_to_keep(trials, job)
    placed = job.ready
    before = job.spec
    if before is None or len(members) < 2 or job.min_member - placed < 2:
        return None

    def tried(count: int, *, promised: bool = False) -> bool:
        with _as_if_smaller(job, placed + count, members[count:], promised=promised):
            return fits(count)

    count = _largest(trials, min(len(members), job.min_member - placed) - 1, tried, max(1, least_of_all))
    if count is None:
        return None
    least = placed + count
    change: dict[str, Any] = {"minMember": least}
    with _as_if_smaller(job, least, members[count:]) as smaller:
        if smaller.min_task_member != before.min_task_member:
            change["minTaskMember"] = dict(smaller.min_task_member)
    if not tried(count, promised=True):
        change |= _min_resources(smaller)
    return count, change


def _members(count: int) -> str:
    return f"{count} member{'' if count == 1 else 's'}"


def _members_to_keep(trials: Trials, job: JobInfo) -> tuple[list[TaskInfo], int]:
    """The members that wait, in the order in which to keep them; and how many of them have to stay."""
    waiting = (task for task in job.pending.values() if task.schedulable and not job.is_companion(task))
    return _one_of_each_role_first(job, trials.session.sort_tasks(waiting))


def _one_of_each_role_first(job: JobInfo, tasks: list[TaskInfo]) -> tuple[list[TaskInfo], int]:
    """The tasks, those first without which a role that has a minimum would be empty; and how many those are."""
    empty = {role for role, _ in job.role_minimums() if not job.placed_of(role)}
    first: dict[str, TaskInfo] = {}
    for task in tasks:
        if task.role in empty:
            first.setdefault(task.role, task)
    chosen = list(first.values())
    return [*chosen, *(task for task in tasks if task not in chosen)], len(chosen)


def _min_resources(spec: PodGroupSpec) -> dict[str, Any]:
    minimum = spec.min_resources
    if minimum is None:
        return {}
    amounts = {name: format_amount(name, minimum.get(name)) for name in minimum.dimensions() if minimum.get(name)}
    return {"minResources": amounts}


@contextmanager
def _as_if_smaller(
    job: JobInfo, least: int, left_out: list[TaskInfo], *, promised: bool = False
) -> Iterator[PodGroupSpec]:
    """The gang without these members; `promised`: its minResources are what they were."""
    spec = job.spec
    if spec is None:
        raise ValueError(f"{job.key} has no PodGroup")
    without = total(task.request for task in left_out).without_pods()
    minimum = spec.min_resources
    if minimum is not None and not promised:
        minimum = minimum.exceeded(without)
    roles = dict(spec.min_task_member)
    for task in left_out:
        if roles.get(task.role, 0) > 0:
            roles[task.role] -= 1
    job.spec = replace(spec, min_member=least, min_task_member=roles, min_resources=minimum)
    pending, job.shape_key = job.pending, None
    left = {task.uid for task in left_out}
    job.pending = {uid: task for uid, task in pending.items() if uid not in left}
    try:
        yield job.spec
    finally:
        job.spec, job.pending, job.shape_key = spec, pending, None


def _smaller_member(trials: Trials, job: JobInfo, reason: Reason) -> tuple[float, Change] | None:
    """The largest request of the member that finds no place with which the gang fits."""
    resource = reason.resource
    if resource is None or resource == PODS:
        return None
    waiting = sorted(job.pending.values(), key=lambda task: (-task.shape.init_request.get(resource), task.order))
    member = next((task for task in waiting if task.spec.name == reason.member), waiting[0] if waiting else None)
    if member is None:
        return None
    alike = [task for task in job.pending.values() if task.shape is member.shape]
    asked, step = member.shape.init_request.get(resource), _STEPS.get(resource, 1000)

    def fits(steps: int, *, promised: bool = False) -> bool:
        with _as_if_smaller_pods(trials.session, job, alike, resource, steps * step, promised=promised):
            return trials.fits(job)

    steps = _largest(trials, (asked - 1) // step, fits)
    if steps is None:
        return None
    quantity, shape, size = format_amount(resource, steps * step), member.shape, format_amount(resource, asked)
    more: dict[str, Any] = {}
    if not fits(steps, promised=True):
        with _as_if_smaller_pods(trials.session, job, alike, resource, steps * step) as smaller:
            more = _min_resources(smaller) if smaller is not None else {}

    def say(asking: JobInfo) -> Suggestion:
        own = sorted((task for task in asking.pending.values() if task.shape is shape), key=lambda task: task.order)
        name = own[0].spec.name
        who = f"pods like {name}" if len(own) > 1 else name
        text = f"if {who} asked for {resource} {quantity} instead of {size} it would be placed now"
        return Suggestion(text, {"member": name, "requests": {resource: quantity}, **more})

    return steps * step / asked, say


@contextmanager
def _as_if_smaller_pods(
    session: Session, job: JobInfo, tasks: list[TaskInfo], resource: str, amount: int, *, promised: bool = False
) -> Iterator[PodGroupSpec | None]:
    """The gang with these pods asking for less; `promised`: its minResources are what they were."""
    book, spec = session.cache.shapes, job.spec
    originals = [(task, task.spec, task.shape) for task in tasks]
    less = Resources()
    for task, pod, _ in originals:
        request, init = _limited(pod.request, resource, amount), _limited(pod.init_request, resource, amount)
        less.add(pod.request.exceeded(request).without_pods())
        task.spec = replace(pod, request=request, init_request=init)
        task.shape = book.take(request, init, task.shape.scheduling, task.identity)
    if spec is not None and spec.min_resources is not None and not promised:
        job.spec = replace(spec, min_resources=spec.min_resources.exceeded(less))
    job.shape_key = None
    try:
        yield job.spec
    finally:
        for task, pod, shape in originals:
            book.give_back(task.shape)
            task.spec, task.shape = pod, shape
        job.spec, job.shape_key = spec, None


def _limited(request: Resources, resource: str, amount: int) -> Resources:
    limited = request.clone()
    if resource == CPU:
        limited.milli_cpu = min(limited.milli_cpu, amount)
    elif resource == MEMORY:
        limited.memory = min(limited.memory, amount)
    elif resource in limited.scalars:
        limited.scalars[resource] = min(limited.scalars[resource], amount)
    return limited


def _largest(trials: Trials, upto: int, fits: Callable[[int], bool], least: int = 1) -> int | None:
    """The largest number from `least` to `upto` that fits, where all smaller ones do; None when `least` does not."""
    if upto < least or trials.left <= 0 or not fits(least):
        return None
    low, high = least, upto
    while low < high and trials.left > 0:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
