"""What the evicting actions share: who hunts for room, and when an eviction may be sent.

An eviction is sent only if the preemptor's gang ends with all that it needs: its minimum (of every role too) and its
companions have nodes, or are promised room. Else everything is taken back (volcano#5026, volcano#5010).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from muster.scheduler.actions.order import TurnOrder
from muster.scheduler.eligibility import obstacle_to_placement
from muster.scheduler.explain import refusal_reasons
from muster.scheduler.nominations import waiting_for_victims
from muster.scheduler.placing import gang_key, required_first
from muster.scheduler.sparing import Promises, take_back_needless
from muster.scheduler.specs import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from muster.scheduler.hunt import Hunt
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.session import Session
    from muster.scheduler.statement import Statement
    from muster.scheduler.task import TaskInfo


class Hunters:
    """The jobs that hunt for room in one action, queue by queue."""

    def __init__(self, session: Session, action: str) -> None:
        self._session = session
        self._action = action
        starving = [job for job in session.candidates if is_starving(session, job)]
        # Those too whose queue may take nothing now: that changes when pods of theirs, or of others, leave.
        session.hunted.update(job.key for job in starving)
        session.hunting_has_begun = True
        self._turns = TurnOrder(session, starving)
        self._failed: set[object] = set()
        actions = session.configuration.actions
        self._allocate_follows = "allocate" in actions[actions.index(action) :]
        self._for_allocate: list[Statement] = []

    def queues(self) -> Iterator[QueueInfo]:
        """Each queue once, in order."""
        while (queue := self._turns.next_queue()) is not None:
            yield queue
        for statement in reversed(self._for_allocate):
            statement.discard()

    def decide(self, job: JobInfo, statement: Statement) -> None:
        """Send the evictions and keep the room for the job.

        Room that is there without any eviction is only kept from the jobs behind it until the action ends: where
        allocate still runs in this cycle it binds the job there, and a promise would keep it from doing so for ever.
        """
        if statement.evictions or not self._allocate_follows:
            decide(self._session, job, statement)
        else:
            self._for_allocate.append(statement)

    def jobs(self, queue: QueueInfo) -> Iterator[JobInfo]:
        """The queue's jobs in order, but for those that can't fare better than one that has failed."""
        while (job := self._turns.next_job(queue)) is not None:
            if self._key(job) not in self._failed:
                yield job

    def succeeded(self, job: JobInfo) -> None:
        """The job has its room: the parked one that waits behind it follows."""
        follower = self._session.next_like(job, Phase.INQUEUE)
        if follower is None:
            return
        known = self._session.attempts.get(gang_key(follower))
        if known is not None:
            self._session.find(follower, *refusal_reasons(self._session, follower, known))
        if is_starving(self._session, follower):
            self._turns.push_job(follower)

    def failed(self, job: JobInfo) -> None:
        """No room can be made for the job, nor for others like it."""
        self._failed.add(self._key(job))

    def _key(self, job: JobInfo) -> object:
        if job.ready or job.broken_since is not None or job.key in self._session.cache.rivals.losers:
            return job.key
        return (gang_key(job), self._session.framework.kind(job), job.priority)


def is_starving(session: Session, job: JobInfo) -> bool:
    """Whether the job may hunt: admitted, not kept from being placed by anything but room, and starving."""
    if job.phase is Phase.PENDING and job.broken_since is None:
        return False
    if not any(task.schedulable for task in job.pending.values()):
        return False
    return obstacle_to_placement(session, job) is None and session.framework.job_starving(session, job)


def hunting_tasks(session: Session, job: JobInfo) -> list[TaskInfo]:
    """The members that want a place, the first first."""
    waiting = (task for task in job.pending.values() if task.schedulable and not job.is_companion(task))
    return required_first(job, session.sort_tasks(waiting))


def orders_to_try(session: Session, job: JobInfo) -> Iterator[list[TaskInfo]]:
    """The members in order; then those first who mind their neighbours, and could find one of their own in the way."""
    tasks = hunting_tasks(session, job)
    yield tasks
    minding = sorted(tasks, key=lambda task: task.shape.ties is None)
    if minding != tasks:
        yield minding


def hunt_for_gang(
    hunt: Hunt, job: JobInfo, statement: Statement, *, applies: Callable[[TaskInfo], bool] = lambda _: True
) -> bool:
    """Make room for members until the job is content, and for its companions; True when all that it needs is there."""
    session = hunt.session
    with session.holds.lifted_for(job):
        for tasks in orders_to_try(session, job):
            trial = session.statement()
            if _hunt_in_turn(hunt, job, [task for task in tasks if applies(task)], trial):
                statement.take_over(trial)
                return True
            trial.discard()
    return False


def _hunt_in_turn(hunt: Hunt, job: JobInfo, tasks: list[TaskInfo], statement: Statement) -> bool:
    session = hunt.session
    hunt.begin()
    for task in tasks:
        if job.is_pipelined() and not session.framework.job_starving(session, job):
            break
        hunt.make_room(task, statement)
    found = is_content(session, job) and all(hunt.make_room(task, statement) for task in job.companions_pending())
    return found and _holds_without_the_needless(session, statement)


def _holds_without_the_needless(session: Session, statement: Statement) -> bool:
    """Spare who was evicted for one task and is needed no more because of who went for another."""
    if not statement.evictions:
        return True
    victims = [task for task in statement.tasks if task.uid in statement.evictions]
    take_back_needless(session, statement, [[task] for task in reversed(victims)])
    return Promises(session, statement).stand()


def is_content(session: Session, job: JobInfo) -> bool:
    """Whether the job's minimum has nodes or promises of nodes."""
    return job.is_pipelined() and session.framework.job_pipelined(session, job)


def decide(session: Session, job: JobInfo, statement: Statement) -> None:
    """Send the evictions and keep the room for the job."""
    statement.commit(by=job.key)
    job.wanting_nodes = {}
    session.findings[job.key] = [waiting_for_victims(job)]
