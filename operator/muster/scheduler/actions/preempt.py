"""Take room from others of the same queue.

First between jobs: a starving job evicts pods of other jobs until its minimum has room. Then inside each job: a task
evicts others of its own gang, one at a time. Who may go for whom is the plugins' word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muster.scheduler.actions.hunting import Hunters, hunt_for_gang, hunting_tasks, is_content
from muster.scheduler.hunt import Hunt, Suits
from muster.scheduler.topology_aware import CarefulHunt, Sampling
from muster.scheduler.victims import PREEMPTABLE, Pool, pool_of

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

REASON = "preempt"


def preempt(session: Session) -> None:
    """Let starving jobs of every queue take room from their own queue."""
    hunters = Hunters(session, REASON)
    for queue in hunters.queues():
        pool = pool_of([queue], PREEMPTABLE)
        hunt = _hunt(session, pool, _of_another_job)
        starving = []
        for job in hunters.jobs(queue):
            starving.append(job)
            if _between_jobs(hunters, hunt, job):
                hunters.succeeded(job)
            else:
                hunters.failed(job)
        inside = _hunt(session, pool, _of_the_same_job)
        for job in starving:
            _inside_the_job(hunters, inside, job)


def _hunt(session: Session, pool: Pool, suits: Suits) -> Hunt:
    def verdict(task: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        return session.framework.preemptable(session, task, candidates)

    arguments = session.configuration.arguments.get(REASON, {})
    if not arguments.get("enableTopologyAwarePreemption", False):
        return Hunt(session, REASON, pool, suits, verdict)
    hunt = CarefulHunt(session, REASON, pool, suits, verdict)
    hunt.sampling = Sampling.of(arguments)
    return hunt


def _of_another_job(preemptor: TaskInfo, candidate: TaskInfo) -> bool:
    return candidate.job is not preemptor.job and _worth_it(preemptor, candidate)


def _of_the_same_job(preemptor: TaskInfo, candidate: TaskInfo) -> bool:
    return candidate.job is preemptor.job and _worth_it(preemptor, candidate)


def _worth_it(preemptor: TaskInfo, candidate: TaskInfo) -> bool:
    """Nobody who asks for something goes for one who asks for nothing."""
    return candidate.best_effort or not preemptor.best_effort


def _may_preempt(task: TaskInfo) -> bool:
    return not task.spec.preemption_policy_never


def _between_jobs(hunters: Hunters, hunt: Hunt, job: JobInfo) -> bool:
    statement = hunt.session.statement()
    if hunt_for_gang(hunt, job, statement, applies=_may_preempt) and len(statement):
        hunters.decide(job, statement)
        return True
    statement.discard()
    return False


def _inside_the_job(hunters: Hunters, hunt: Hunt, job: JobInfo) -> None:
    session = hunt.session
    hunt.begin()
    for task in hunting_tasks(session, job):
        statement = session.statement()
        with session.holds.lifted_for(job):
            found = _may_preempt(task) and hunt.make_room(task, statement) and is_content(session, job)
            found = found and not job.companions_pending()
        if not found:
            statement.discard()
            return
        hunters.decide(job, statement)
