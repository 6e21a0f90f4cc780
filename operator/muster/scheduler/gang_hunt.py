"""Making room for a whole gang at once: the search that gangpreempt and gangreclaim share.

Bundles of victims are given up one after the other until the whole gang has places; then those that turn out needless
are spared, the costliest first (volcano#5994, volcano#5984). All of it happens in one Statement, which is handed back
only if the gang has all that it needs. The whole cluster is one domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.evictable import EvictionContext
from muster.scheduler.nominations import can_promise, promise_free_room
from muster.scheduler.resources import Resources, total
from muster.scheduler.specs import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muster.scheduler.bundles import Bundle
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.statement import Statement
    from muster.scheduler.task import TaskInfo

_NOTHING = Resources()


def allowed_tasks(session: Session, action: str, job: JobInfo, bundles: Sequence[Bundle]) -> list[TaskInfo]:
    """Whom the plugins let go for the job."""
    candidates = [task for bundle in bundles for task in bundle.tasks]
    return session.framework.unified_evictable(session, EvictionContext(action, job), candidates)


def clear_room(
    session: Session,
    bundles: Sequence[Bundle],
    need: Resources,
    place: Callable[[Statement], bool],
    reason: str,
) -> Statement | None:
    """The evictions and promises that give the gang all it needs, or None.

    `need` is what it asks for at least, `place` promises room to it and says whether that is enough.
    """
    statement = session.statement()
    room = total(node.future_idle.maximum(_NOTHING) for node in session.cache.nodes.values() if node.spec is not None)
    given_up: list[Bundle] = []
    for bundle in bundles:
        for task in bundle.tasks:
            statement.evict(task, reason)
        given_up.append(bundle)
        room.add(bundle.frees)
        if not need.less_equal(room):
            continue
        trial = session.statement()
        if place(trial):
            statement.take_over(trial)
            _spare_the_needless(session, given_up, statement, reason)
            return statement
        trial.discard()
    statement.discard()
    return None


def _spare_the_needless(session: Session, given_up: list[Bundle], statement: Statement, reason: str) -> None:
    promised = [task for task in statement.tasks if task.status is TaskStatus.PIPELINED]
    for bundle in reversed(given_up):
        groups = [bundle.tasks] if bundle.whole else [[task] for task in reversed(bundle.tasks)]
        for tasks in groups:
            for task in tasks:
                statement.spare(task)
            if not _still_kept(session, tasks, promised[-1]):
                for task in tasks:
                    statement.evict(task, reason)


def _still_kept(session: Session, spared: Sequence[TaskInfo], last: TaskInfo) -> bool:
    """Whether all that was promised still holds: on the nodes of the spared tasks, and in the gang's queue."""
    nodes = session.cache.nodes
    if not all(_NOTHING.less_equal(nodes[task.node].future_idle) for task in spared if task.node is not None):
        return False
    again = session.statement()
    node = nodes[last.node or ""]
    again.withdraw(last)
    holds = can_promise(session, last, node)
    again.discard()
    return holds


def place_with_room(
    session: Session, tasks: Sequence[TaskInfo], statement: Statement, content: Callable[[], bool]
) -> None:
    """Promise room that is free or being freed to tasks, in order, until the gang is content."""
    for task in tasks:
        if content():
            return
        promise_free_room(session, task, statement)
