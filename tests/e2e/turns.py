"""Turns of test processes on one cluster: many at once, or one alone."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(lock: Path, *, alone: bool) -> Iterator[None]:
    """Holds the lock file for the block, with others or `alone`. Waits as long as it takes: each test has deadlines.

    The kernel frees it when the process dies.
    """
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
