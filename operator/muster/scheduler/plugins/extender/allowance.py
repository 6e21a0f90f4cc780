"""How much of the scheduler's time an extender may take.

While an answer is waited for nothing else is decided, no pod is watched and no Lease renewed. So in one cycle

- after `SECONDS_TO_BEGIN` no further gang is begun: its turn comes in the next cycle, which then has all its time;
- after `SECONDS_IN_ALL` nothing is asked any more. A gang about which alone that much was asked is refused;
- after `FAILURES` failures in a row the extender counts as dead. It is tried again after a pause that doubles from
  `FIRST_PAUSE` to `LONGEST_PAUSE`, and then one failure is enough for the next pause.

A cycle that took long is followed by as long a time in which nothing is asked, so that all else is done meanwhile. The
longest silence has to stay well below the ten seconds after which a leader that could not renew its Lease steps down.
"""

from __future__ import annotations

from enum import Enum

FAILURES = 3
SECONDS_TO_BEGIN = 2.0
SECONDS_IN_ALL = 4.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
_NOTICEABLE = 0.5
_SHORTEST_TRY = 0.05


class Standing(Enum):
    """Whether something may be asked now."""

    OPEN = "ask"
    BUSY = "not now: there was too much to ask"
    ENDLESS = "no: about this alone there is too much to ask"
    BROKEN = "no: it does not answer"


class Allowance:
    """The account of one extender. Times are Unix seconds, and seconds."""

    def __init__(self) -> None:
        self._now = 0.0
        self._spent = 0.0
        self._failures = 0
        self._pause = 0.0
        self._dead_until = 0.0
        self._busy_until = 0.0
        self._begun: set[str] = set()
        self._endless: set[str] = set()
        self.problem = ""
        """What failed last."""

    def begin(self, now: float) -> None:
        """A cycle begins."""
        self._now, self._spent = now, 0.0
        self._begun.clear()
        self._endless.clear()

    def end(self) -> None:
        """The cycle is over: what it spent is made up for."""
        if self._spent >= _NOTICEABLE:
            self._busy_until = self._now + 2 * self._spent

    def standing(self, about: str | None = None) -> Standing:
        """Whether a question about this gang (None: about none in particular) may be asked now."""
        if self._dead_until > self._now:
            return Standing.BROKEN
        if about in self._endless:
            return Standing.ENDLESS
        if self._busy_until > self._now or self._spent >= SECONDS_IN_ALL:
            return Standing.BUSY
        if about is not None and about not in self._begun and self._spent >= SECONDS_TO_BEGIN:
            return Standing.BUSY
        return Standing.OPEN

    def timeout(self, wanted: float) -> float:
        """How long a question may take that is allowed `wanted`."""
        return max(_SHORTEST_TRY, min(wanted, SECONDS_IN_ALL - self._spent))

    def answered(self, about: str | None, seconds: float) -> None:
        """A question was answered."""
        self._failures, self._pause = 0, 0.0
        self._spend(about, seconds)

    def failed(self, about: str | None, seconds: float, problem: str) -> None:
        """A question was not."""
        self.problem = problem
        self._failures += 1
        self._spend(about, seconds)
        if self._failures >= FAILURES or self._pause or self._spent >= SECONDS_IN_ALL:
            self._pause = min(LONGEST_PAUSE, 2 * self._pause or FIRST_PAUSE)
            self._dead_until = self._now + self._spent + self._pause
            self._failures = 0

    def _spend(self, about: str | None, seconds: float) -> None:
        self._spent += seconds
        if about is None:
            return
        self._begun.add(about)
        if self._spent >= SECONDS_IN_ALL and self._begun == {about}:
            self._endless.add(about)

    @property
    def next_chance(self) -> float:
        """When something may be asked again."""
        return max(self._dead_until, self._busy_until)
