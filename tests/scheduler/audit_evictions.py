"""Whether evictions are worth it, looked at in the moment in which they are decided, with all places tried anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from muster.scheduler.nominations import can_promise
from muster.scheduler.session import Session
from muster.scheduler.specs import TaskStatus
from muster.scheduler.statement import Statement
from muster.scheduler.task import TaskInfo

_ONE_BY_ONE = {"preempt", "reclaim"}
_BY_BUNDLE = {"gangpreempt", "gangreclaim"}


@contextmanager
def audited_evictions() -> Iterator[None]:
    """Fail where evictions are decided that do not give the gang all its room, or more of them than that takes."""
    commit = Statement.commit

    def audited(statement: Statement, *, by: str = "") -> None:
        if set(statement.evictions.values()) & (_ONE_BY_ONE | _BY_BUNDLE):
            _audit(statement, statement._session, by)
        commit(statement, by=by)

    with patch.object(Statement, "commit", audited):
        yield


def _audit(statement: Statement, session: Session, by: str) -> None:
    promised = [task for task in statement.tasks if task.status is TaskStatus.PIPELINED]
    victims = {task.uid: (task, before) for task, before, _ in statement._journal if task.uid in statement.evictions}
    with session.holds.lifted_for(session.cache.jobs[by]):
        assert _can_all_be_had(session, promised, []), (by, "what is promised can't be had")
        for uid, (victim, before) in victims.items():
            if not _can_all_be_had(session, promised, [(victim, before)]):
                continue
            together = [(task, status) for task, status in victims.values() if task.job is victim.job]
            whole = victim.job is not None and victim.job.ready < victim.job.min_member
            assert whole, (by, uid, "need not go")
            assert statement.evictions[uid] in _BY_BUNDLE, (by, uid, "need not go")
            assert not _can_all_be_had(session, promised, together), (by, uid, "the whole gang need not go")


def _can_all_be_had(
    session: Session, promised: Sequence[TaskInfo], spared: Sequence[tuple[TaskInfo, TaskStatus]]
) -> bool:
    """Whether each of the promises could be made again, one after the other, if these pods stayed."""
    places = [(task, session.cache.nodes[task.node or ""]) for task in promised]
    trial = session.statement()
    for task, _ in places:
        trial.withdraw(task)
    for task, before in spared:
        trial._move(task, before, task.node)
    try:
        for task, node in places:
            if not can_promise(session, task, node):
                return False
            trial.pipeline(task, node)
        return True
    finally:
        trial.discard()
