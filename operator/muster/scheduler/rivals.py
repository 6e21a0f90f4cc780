"""Who has taken whose room, so that no eviction goes round in circles.

A job that lost pods may not win that room back from the tasks that took it, nor from whoever takes it from those:
rules that take turns (priority in one tier, shares in the next) would otherwise have two jobs evict each other for ever
(volcano#377, volcano#4947). The tasks remember it (`TaskInfo.spoils`); what they lose in their turn is remembered with
it, so each piece of room changes hands by eviction at most once for each job. Only a change lifts the ban: of either
PodGroup, of any Queue or PriorityClass, of the configuration, or, between two queues, of what they deserve in the
loser's favour. Nothing is persisted: after a restart one more round is possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from muster.scheduler.resources import Resources

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.task import TaskInfo


@dataclass(frozen=True, slots=True)
class Loss:
    """Under which rules and terms one job lost room to another, and what their queues deserved.

    The amounts are None when the queue is the same, or no plugin says.
    """

    rules: object
    losers_terms: object
    winners_terms: object
    losers_due: Resources | None
    winners_due: Resources | None


class Rivals:
    """Remembers and judges. `losers` are the keys of all jobs that have lost room under the present rules."""

    def __init__(self) -> None:
        self._rules = object()
        self.losers: set[str] = set()

    def take(self, winners: Iterable[TaskInfo], victims: Iterable[TaskInfo]) -> None:
        """The winners, tasks of one job, are given the room of the victims."""
        winning = list(winners)
        job = winning[0].job if winning else None
        if job is None:
            return
        gone = [victim for victim in victims if victim.job is not job]
        spoils = {key: replace(loss, winners_terms=job.terms) for victim in gone for key, loss in victim.spoils.items()}
        losers = {victim.job.key: victim.job for victim in gone if victim.job is not None}
        spoils |= {key: self._loss(loser, job) for key, loser in losers.items()}
        self.losers.update(spoils)
        spoils.pop(job.key, None)
        for winner in winning:
            winner.spoils = {**winner.spoils, **spoils}

    def _loss(self, loser: JobInfo, winner: JobInfo) -> Loss:
        apart = loser.queue is not winner.queue
        due = (_due(loser.queue), _due(winner.queue)) if apart else (None, None)
        return Loss(self._rules, loser.terms, winner.terms, *due)

    def may_take(self, job: JobInfo, candidate: TaskInfo) -> bool:
        """Whether the candidate may be evicted for the job: it sits on no room that the job has lost."""
        loss = candidate.spoils.get(job.key)
        if loss is None or candidate.job is None:
            return True
        stands = (loss.rules is self._rules) and (loss.losers_terms is job.terms)
        if not stands or loss.winners_terms is not candidate.job.terms:
            return True
        return _grown(loss.losers_due, job.queue.deserved) or _grown(candidate.job.queue.deserved, loss.winners_due)

    def clear(self) -> None:
        """The rules have changed."""
        self._rules = object()
        self.losers.clear()


def _due(queue: QueueInfo) -> Resources | None:
    return queue.deserved.clone() if queue.deserved is not None else None


def _grown(before: Resources | None, after: Resources | None) -> bool:
    return before is not None and after is not None and not after.less_equal(before)
