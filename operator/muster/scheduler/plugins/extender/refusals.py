"""The reasons for which a gang waits on an extender's account."""

from __future__ import annotations

from muster.scheduler.reasons import Code, Reason, Wake

NOT_ASKED = "the scheduler's extender has not been asked about it yet"


def refused(detail: str, *, member: str | None = None, queue: str | None = None) -> Reason:
    """It says no."""
    wakes = (Wake.EXTENDER, Wake.QUEUE)
    return Reason(Code.EXTENDER_REFUSED, detail=detail, member=member, queue=queue, wakes=wakes)


def unavailable(problem: str) -> Reason:
    """It says nothing, and its word is needed."""
    return Reason(Code.EXTENDER_UNAVAILABLE, detail=problem, wakes=(Wake.EXTENDER,))


def not_asked() -> Reason:
    """There was more to ask than one cycle has time for."""
    return Reason(Code.WAITING_FOR_TURN, detail=NOT_ASKED, wakes=(Wake.EXTENDER,))
