"""What a cycle does, one verb a module, by the name a configuration calls it."""

from __future__ import annotations

from collections.abc import Callable

from muster.scheduler.actions.allocate import allocate
from muster.scheduler.actions.backfill import backfill
from muster.scheduler.actions.enqueue import enqueue
from muster.scheduler.session import Session

ACTIONS: dict[str, Callable[[Session], None]] = {"enqueue": enqueue, "allocate": allocate, "backfill": backfill}

NOT_YET = frozenset({"preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim"})
"""Actions of Volcano that a configuration may know but that are not here."""
