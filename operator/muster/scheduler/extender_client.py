"""How a plugin reaches a program outside of Muster.

The scheduler does no input or output itself (P4): what an extender says is an argument of a cycle like the model and
the time. The engine hands a client in; where there is none (a simulation, `muster explain`) nobody is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer with status 200, and how many seconds it took."""

    body: bytes
    seconds: float


class ExtenderError(Exception):
    """There is no answer that could be used. `problem` says why without naming anything that was sent."""

    def __init__(self, problem: str, seconds: float = 0.0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.seconds = seconds


class ExtenderClient(Protocol):
    """Sends one question and waits for its answer."""

    def post(self, url: str, body: bytes, timeout: float) -> Answer:
        """POST JSON. Raises ExtenderError, after `timeout` seconds at the latest."""
