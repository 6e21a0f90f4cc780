"""Asking: one question, one answer, within what is allowed.

In one cycle the same question (to the byte) is sent once, for a gang is tried in several ways and the model is as it
was in between. An extender that follows what is placed may think otherwise after each placement, so the answers are
forgotten with each of these, and all of them with the cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from muster.scheduler.extender_client import Answer, ExtenderClient, ExtenderError
from muster.scheduler.plugins.extender.allowance import SECONDS_IN_ALL, Allowance, Standing
from muster.scheduler.plugins.extender.answers import Body, parse
from muster.scheduler.plugins.extender.options import ExtenderOptions, Point
from muster.scheduler.plugins.extender.refusals import not_asked, refused, unavailable

if TYPE_CHECKING:
    from muster.scheduler.reasons import Reason

T = TypeVar("T")
Question = Callable[[], bytes]
"""Writes the question; called only if it may be sent."""


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer. `reason` is why whoever needs one has to wait, None when he may go on without."""

    reason: Reason | None


class Calls:
    """The way to one extender. `about` is the key of the gang that a question is about."""

    def __init__(self, options: ExtenderOptions, client: ExtenderClient) -> None:
        self._options = options
        self._client = client
        self._allowance = Allowance()
        self._known: dict[tuple[Point, bytes], Any] = {}
        self._shut: Silence | None = None

    def begin(self, now: float) -> None:
        """A cycle begins. `now` is Unix seconds."""
        self._allowance.begin(now)
        self._shut = None

    def shut(self, silence: Silence) -> None:
        """Nothing more is asked in this cycle, unless that may be ignored: the silence answers everything."""
        self._shut = silence if silence.reason is not None else None

    def end(self) -> None:
        """The cycle is over, and nothing that was answered in it holds for the next."""
        self._known.clear()
        self._allowance.end()

    @property
    def next_chance(self) -> float:
        """When something may be asked again (Unix seconds)."""
        return self._allowance.next_chance

    def silence(self, about: str | None) -> Silence | None:
        """What would come of a question at once because it may not be asked; None when it may."""
        if self._shut is not None:
            return self._shut
        match self._allowance.standing(about):
            case Standing.OPEN:
                return None
            case Standing.BUSY:
                return Silence(not_asked())
            case Standing.ENDLESS:
                return self._silence(refused(f"to ask all about it takes longer than {SECONDS_IN_ALL:g} s"))
            case Standing.BROKEN:
                return self._silence(unavailable(self._allowance.problem))

    def ask(self, point: Point, question: Question, read: Callable[[Body], T], about: str | None) -> T | Silence:
        """The answer to a question, as `read` understands it (it raises ValueError)."""
        silence = self.silence(about)
        if silence is not None:
            return silence
        text = question()
        key = (point, blake2b(text, digest_size=16).digest())
        if key not in self._known:
            self._known[key] = self._send(point, text, lambda body: read(parse(body)), about)
        found: T | Silence = self._known[key]
        return found

    def tell(self, point: Point, news: Question, read: Callable[[bytes], T], about: str | None = None) -> T | Silence:
        """Tell it something, even if it was told the same before; what it answers."""
        silence = self.silence(about)
        if silence is not None:
            return silence
        self._known.clear()
        return self._send(point, news(), read, about)

    def _send(self, point: Point, text: bytes, read: Callable[[bytes], T], about: str | None) -> T | Silence:
        timeout = self._allowance.timeout(self._options.timeout)
        answer = Answer(b"", 0.0)
        try:
            answer = self._client.post(self._options.url(point), text, timeout)
            found = read(answer.body)
        except ExtenderError as error:
            self._allowance.failed(about, error.seconds, error.problem)
            return self._silence(unavailable(error.problem))
        except ValueError as error:
            self._allowance.failed(about, answer.seconds, str(error))
            return self._silence(unavailable(str(error)))
        self._allowance.answered(about, answer.seconds)
        return found

    def _silence(self, reason: Reason) -> Silence:
        return Silence(None if self._options.ignorable else reason)
