"""Room that gangs keep until a cycle ends, because their last members wait for pods to leave.

The promise ends with the cycle and is made anew in the next one. Whoever was kept out by it is parked meanwhile, and
asked again only for room that the gang does not keep any more: at the moment when that is known, so that nobody who
comes later gets there first. While the gang keeps the same places an event wakes only those whom it concerns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from muster.scheduler.parking import Relief
from muster.scheduler.placement import fits

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import Shape, TaskInfo

Places = list[tuple["TaskInfo", str]]


class KeptRoom:
    """What was kept in the last cycle and is not looked at yet, and what is kept in this one, by job."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._before: dict[str, Places] = {}
        self._now: dict[str, Places] = {}
        self._known: set[tuple[str, str]] = set()

    def begin(self) -> None:
        """Take over what the last cycle kept."""
        cache = self._session.cache
        self._before, cache.reserving = cache.reserving, {}
        self._known = {(task.uid, name) for places in self._before.values() for task, name in places}

    def note(self, job: JobInfo, tasks: Iterable[TaskInfo]) -> None:
        """The tasks, on their nodes now, keep their places until the cycle ends."""
        kept = self._now.setdefault(job.key, [])
        kept.extend((task, task.node) for task in tasks if task.node is not None)

    def hand_over(self, job: JobInfo) -> Places:
        """What the job keeps, for the next cycle. Who waits for company is asked again where that is new."""
        places = self._now.get(job.key, [])
        for task, name in places:
            if (task.uid, name) not in self._known:
                self._session.cache.note_company(task)
        return places

    def given_up(self, jobs: Iterable[JobInfo], ahead: Iterable[TaskInfo] = ()) -> list[JobInfo]:
        """Wake those who may use what the jobs keep no more, now that all but their tasks `ahead` were looked at."""
        if not self._before:
            return []
        relief, undecided = Relief(), {task.uid for task in ahead}
        for job in jobs:
            before = self._before.pop(job.key, None)
            if before is None:
                continue
            self._before[job.key] = [(task, name) for task, name in before if task.uid in undecided]
            for task, name in before:
                if task.node != name and task.uid not in undecided:
                    relief.add_place(task, self._session.cache.nodes.get(name))
        if not relief:
            return []
        relief.newcomers = _are_admitted_after(self._session.configuration.actions)
        woken = wake(self._session, relief)
        self._session.join(woken)
        return woken

    def given_up_by_companions(self) -> list[JobInfo]:
        """The same for companions of gangs that run: they are looked at before all members."""
        jobs = self._session.cache.jobs
        running = [jobs[key] for key in self._before if key in jobs and jobs[key].is_ready()]
        return self.given_up(running, [task for job in running for task in job.pending.values()])

    def given_up_unseen(self) -> list[JobInfo]:
        """The same for the jobs that nobody looked at in this cycle."""
        jobs = self._session.cache.jobs
        return self.given_up([jobs[key] for key in [*self._before] if key in jobs]) if self._before else []


def _are_admitted_after(actions: tuple[str, ...]) -> bool:
    """Whether jobs that are not admitted yet may be in this cycle, although allocate runs already."""
    rest = actions[actions.index("allocate") + 1 :]
    return "enqueue" in rest or "enqueue" not in actions


def wake(session: Session, relief: Relief) -> list[JobInfo]:
    """Take the jobs that the relief could help out of the parking lot."""
    cache = session.cache
    woken = cache.lot.wake(relief, lambda shape, nodes: _helps(session, shape, nodes))
    for job in woken:
        cache.touch(job)
    return woken


def _helps(session: Session, shape: Shape, nodes: Iterable[NodeInfo]) -> bool:
    """Whether the shape fits on one of the nodes, now or once leaving pods are gone."""
    judge = session.framework.judge
    for node in nodes:
        if node.spec is None or judge.refusal(shape, node) is not None:
            continue
        if fits(shape, node.future_idle):
            return True
    return False
