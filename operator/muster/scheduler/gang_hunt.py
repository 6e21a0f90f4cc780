"""Making room for a whole gang at once: the search that gangpreempt and gangreclaim share.

Bundles of victims are given up one after the other until the whole gang has places; then those that turn out needless
are spared, the costliest first (volcano#5994, volcano#5984). All of it happens in one Statement, which is handed back
only if the gang has all that it needs. The whole cluster is one domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.evictable import EvictionContext
from muster.scheduler.nominations import promise_free_room
from muster.scheduler.resources import Resources, total
from muster.scheduler.sparing import take_back_needless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
            take_back_needless(session, statement, _groups(given_up))
            return statement
        trial.discard()
    statement.discard()
    return None


def _groups(given_up: Sequence[Bundle]) -> Iterator[list[TaskInfo]]:
    """Who is spared together, the costliest first."""
    for bundle in reversed(given_up):
        if bundle.whole:
            yield bundle.tasks
        else:
            yield from ([task] for task in reversed(bundle.tasks))


def place_with_room(
    session: Session, tasks: Sequence[TaskInfo], statement: Statement, content: Callable[[], bool]
) -> None:
    """Promise room that is free or being freed to tasks, in order, until the gang is content."""
    for task in tasks:
        if content():
            return
        promise_free_room(session, task, statement)
