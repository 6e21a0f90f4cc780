"""Room that is held for gangs which have waited too long, so that nobody overtakes them for ever (P9).

This is the backfill of batch schedulers (EASY: Lifka, "The ANL/IBM SP scheduling system", 1995), a gang at a time in
each queue. For the first gang of the queue that has waited too long a place is chosen for every member. Where the place
is free already just that amount is kept, the rest of the node is for anybody. On a node that has yet to drain nothing
is started any more, but for what is over, by its declared run time, before the gang can begin. Quota is held in the
same way: what is started beside the gang leaves it enough of the quota once that is over which ran before.

A gang of higher priority is not bound by it, nor one that completes itself again after it lost members.

On the nodes a hold is made of stand-ins that take the room for the length of a cycle, so that the search for nodes
needs to know nothing of holds. `lifted_for` takes those away that don't bind a gang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from muster.scheduler.constraints import UNCONSTRAINED
from muster.scheduler.hold_plan import Hold, release
from muster.scheduler.neighbours import Identity
from muster.scheduler.placing import Attempt, gang_key
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.resources import Resources
from muster.scheduler.specs import TaskSpec, TaskStatus
from muster.scheduler.task import Shape, TaskInfo

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session

_ZERO = Resources()
_RFC3339 = "%Y-%m-%dT%H:%M:%SZ"


class Holds:
    """The holds of one cycle. Without any, every method does nothing at next to no cost."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._standing: dict[str, list[TaskInfo]] = {}
        self._begun = False

    @property
    def _holds(self) -> list[Hold]:
        return self._session.cache.holds

    def of(self, job: JobInfo) -> Hold | None:
        """What is held for this job."""
        return next((hold for hold in self._holds if hold.job is job), None)

    def key(self, job: JobInfo) -> object:
        """Equal for gangs that fare alike: one for which room is held fares like no other."""
        return gang_key(job) if self.of(job) is None else job.key

    def begin(self) -> None:
        """Keep the room from now on."""
        if not self._begun:
            self._begun = True
            self._stand(self._holds)

    def end(self) -> None:
        """Give all room back, as it was."""
        if self._begun:
            self._begun = False
            self._lift(self._holds)
            placed = [hold for hold in self._holds if self._is_placed(hold.job)]
            for hold in placed:
                release(self._session, hold)
            self._session.cache.holds = [hold for hold in self._holds if hold not in placed]

    def _is_placed(self, job: JobInfo) -> bool:
        """Whether the job has what was held for it; places that it only keeps until the cycle ends don't count."""
        return job.is_ready() and job.key not in self._session.reserving

    def place(self, job: JobInfo, find: Callable[[], Attempt]) -> Attempt:
        """Find places for the job without delaying a gang for which room is held.

        An attempt that failed only because of that has `reserved` set and decides nothing.
        """
        if not self._begun or not self._holds:
            return find()
        with self.lifted_for(job):
            attempt = self._beside(job, find)
            if attempt.reserved is not None or _found(job, attempt):
                return attempt
            attempt.statement.discard()
        others = [hold for hold in self._holds if hold.job is not job]
        if not others:
            return attempt
        with self.lifted():
            free = find()
            kept_out = _found(job, free)
            free.statement.discard()
            for task in free.short.values():
                self._session.survey_nodes(task.shape)  # as the nodes are, not as they are held
        return self._refused(attempt, others[0]) if kept_out else free

    def _refused(self, attempt: Attempt, hold: Hold) -> Attempt:
        reason = Reason(
            Code.ROOM_RESERVED,
            queue=hold.job.queue.name,
            detail="" if hold.until is None else datetime.fromtimestamp(int(hold.until), UTC).strftime(_RFC3339),
            wakes=(Wake.NODES, Wake.QUEUE),
        )
        return Attempt(self._session.statement(), attempt.need, reserved=reason)

    def _beside(self, job: JobInfo, find: Callable[[], Attempt]) -> Attempt:
        attempt = find()
        binding = [hold for hold in self._holds if self._binds(hold, job)] if _found(job, attempt) else []
        tasks = attempt.statement.tasks
        for hold in binding:
            if self._takes_quota(hold, tasks):
                attempt.statement.discard()
                return self._refused(attempt, hold)
        for hold in binding:
            hold.beside.update(task.uid for task in tasks)
        return attempt

    def _takes_quota(self, hold: Hold, tasks: list[TaskInfo]) -> bool:
        """Whether these tasks, and what was started beside the gang before, use quota that it is to have."""
        objection = self._session.allocatable(hold.job.queue, hold.need)
        if objection is None or objection.requested is None or objection.limit is None:
            return False
        resource, queue = objection.resource or "", objection.queue or ""
        cache = self._session.cache
        started = [task for uid in hold.beside if (task := cache.tasks.get(uid)) is not None]
        mine, beside = (
            sum(task.request.get(resource) for task in some if task.job is not None and queue in task.job.queue.lineage)
            for some in (tasks, started)
        )
        return mine > 0 and beside + mine > objection.limit - objection.requested

    def _binds(self, hold: Hold, job: JobInfo) -> bool:
        if hold.job is job or job.priority > hold.job.priority or job.broken_since is not None:
            return False
        runtime = job.expected_runtime() if hold.until is not None else None
        return runtime is None or hold.until is None or self._session.now + runtime > hold.until

    def bars(self, job: JobInfo, node: str) -> bool:
        """Whether the node drains for a gang that binds this one: whoever leaves it makes room for that gang."""
        return any(node in hold.draining and self._binds(hold, job) for hold in self._holds)

    @contextmanager
    def lifted_for(self, job: JobInfo) -> Iterator[None]:
        """Let the job use the room of the holds that do not bind it."""
        with self._lifted([hold for hold in self._holds if not self._binds(hold, job)] if self._begun else []):
            yield

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let whatever is done meanwhile use all room."""
        with self._lifted(self._holds if self._begun else []):
            yield

    @contextmanager
    def _lifted(self, holds: list[Hold]) -> Iterator[None]:
        self._lift(holds)
        try:
            yield
        finally:
            self._stand(holds)

    def _stand(self, holds: Iterable[Hold]) -> None:
        cache = self._session.cache
        for hold in holds:
            if hold.job.key in self._standing or hold.job.is_ready():
                continue
            standing = self._standing[hold.job.key] = []
            for name, amount in hold.amounts.items():
                node = cache.nodes.get(name)
                if node is None or node.spec is None:
                    continue
                idle = node.idle.minus(node.pipelined).maximum(_ZERO)  # what is promised is not ours to hold
                task = _stand_in(hold, name, idle if name in hold.draining else amount.minimum(idle))
                self._move(task, TaskStatus.BOUND, name)
                standing.append(task)

    def _lift(self, holds: Iterable[Hold]) -> None:
        for hold in holds:
            for task in self._standing.pop(hold.job.key, ()):
                self._move(task, TaskStatus.PENDING, None)

    def _move(self, task: TaskInfo, status: TaskStatus, node: str | None) -> None:
        """What is held is not used, and no change that a plan would have to follow."""
        cache = self._session.cache
        version, used = cache.index.version, cache.used.clone()
        cache.move(task, status, node)
        cache.index.version, cache.used = version, used


def _stand_in(hold: Hold, node: str, amount: Resources) -> TaskInfo:
    spec = TaskSpec(f"hold/{hold.job.key}/{node}", "", "", request=amount, init_request=amount, ours=False)
    return TaskInfo(spec, Shape(0, amount, amount, UNCONSTRAINED), Identity((), "", {}))


def _found(job: JobInfo, attempt: Attempt) -> bool:
    return attempt.complete or (attempt.later > 0 and job.is_pipelined())
