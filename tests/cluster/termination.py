"""A program that is told to end takes back what it has done, as an interrupted one does."""

from __future__ import annotations

import signal
from types import FrameType


def end_as_if_interrupted() -> None:
    """Have SIGTERM raise KeyboardInterrupt, so that every `finally` is gone through.

    Once only: make passes it on to its children, which `timeout` or a CI job has told already, and the second must not
    cut the taking back short. What this process starts is not affected.
    """
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.signal(number, _do_nothing)
    raise KeyboardInterrupt


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Unlike SIG_IGN this is not inherited by the programs that the taking back starts."""
