"""A program that is told to end takes back what it has done, as an interrupted one does."""

from __future__ import annotations

import signal
import threading
from types import FrameType

_told: threading.Event = threading.Event()


def end_as_if_interrupted() -> None:
    """Have SIGTERM raise KeyboardInterrupt, so that every `finally` is gone through.

    Once only: make passes it on to its children, which `timeout` or a CI job has told already, and the second must not
    cut the taking back short. What this process starts is not affected.
    """
    signal.signal(signal.SIGTERM, _terminate)


def remember_interrupts() -> None:
    """Have an interrupt remembered besides: see `raise_if_told`."""
    signal.signal(signal.SIGINT, _interrupt)


def raise_if_told() -> None:
    """Raise KeyboardInterrupt if this process was told to end, and goes on all the same.

    What a signal raises is printed and lost where it meets a callback of the interpreter, such as that of a weak
    reference; so whoever is about to leave something behind asks first.
    """
    if _told.is_set():
        raise KeyboardInterrupt


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(number, _do_nothing)
    _interrupt(number, frame)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _told.set()
    raise KeyboardInterrupt


def _do_nothing(number: int, frame: FrameType | None) -> None:
    """Unlike SIG_IGN this is not inherited by the programs that the taking back starts."""
