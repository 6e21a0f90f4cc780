"""What serves a RayJob and comes to nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from muster.controllers.rayjob.gang import in_passing
from muster.controllers.rayjob.look import Look
from muster.controllers.setbacks import LASTING_SECONDS, Setbacks
from muster.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound, ServerError, Undecodable
from tests.controllers.fake_clock import FakeClock


class Told:
    """A look as far as it is told of what is done in passing."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.context = SimpleNamespace(clock=self.clock, setbacks_in_passing=dict[str, Setbacks]())
        self.key = "ns/demo"
        self.hindered = False
        self.told: list[str] = []

    def say_refused(self, refusal: ApiError, subject: str) -> None:
        self.told.append(f"{subject} refused")

    def say_failing(self, error: ApiError, subject: str) -> None:
        self.told.append(f"{subject} failing")

    async def passes(self, error: ApiError | None) -> None:
        async def work() -> None:
            if error is not None:
                raise error

        await in_passing(cast(Look, self), "gang", work())


@pytest.mark.parametrize("refusal", [Invalid(422, "Invalid", "no"), Forbidden(403, "Forbidden", "no")])
async def test_a_refusal_is_told_at_once(refusal: ApiError) -> None:
    look = Told()
    await look.passes(refusal)
    assert look.told == ["gang refused"]


@pytest.mark.parametrize(
    "error", [NotFound(404, "HTTP404", "no page"), ServerError(500, "Internal", "x"), Undecodable("x")]
)
async def test_a_failure_is_told_when_it_lasts(error: ApiError) -> None:
    look = Told()
    for _ in range(2):
        await look.passes(error)
        await look.clock.advance(LASTING_SECONDS - 1)
        await look.passes(None)
    await look.passes(error)
    await look.clock.advance(LASTING_SECONDS - 1)
    await look.passes(error)
    assert look.told == []
    await look.clock.advance(1.0)
    await look.passes(error)
    assert look.told == ["gang failing"]


async def test_that_somebody_else_was_faster_is_nothing_to_tell() -> None:
    look = Told()
    for _ in range(2):
        await look.passes(Conflict(409, "Conflict", "another version"))
        await look.clock.advance(LASTING_SECONDS)
    assert look.told == []


@pytest.mark.parametrize(
    ("error", "hindered"),
    [
        (ServerError(500, "Internal", "x"), True),
        (Conflict(409, "Conflict", "another version"), True),
        (Forbidden(403, "Forbidden", "no"), False),
        (None, False),
    ],
)
async def test_what_may_go_better_soon_is_tried_again(error: ApiError | None, hindered: bool) -> None:
    look = Told()
    await look.passes(error)
    assert look.hindered == hindered
