"""What a cycle does, one verb a module, by the name a configuration calls it."""

from __future__ import annotations

from collections.abc import Callable

from muster.scheduler.actions.allocate import allocate
from muster.scheduler.actions.backfill import backfill
from muster.scheduler.actions.enqueue import enqueue
from muster.scheduler.actions.gangpreempt import gangpreempt
from muster.scheduler.actions.gangreclaim import gangreclaim
from muster.scheduler.actions.preempt import preempt
from muster.scheduler.actions.reclaim import reclaim
from muster.scheduler.actions.shuffle import shuffle
from muster.scheduler.session import Session

ACTIONS: dict[str, Callable[[Session], None]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
    "shuffle": shuffle,
    "gangpreempt": gangpreempt,
    "gangreclaim": gangreclaim,
}
