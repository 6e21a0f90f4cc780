"""Work in turn, some of it at a time."""

from __future__ import annotations

import pytest

from bench.controllers.at_once import for_each


async def test_every_item_has_its_turn_in_order() -> None:
    done: list[int] = []

    async def work(item: int) -> None:
        done.append(item)

    await for_each(range(200), work)
    assert done == list(range(200))


async def test_the_first_error_is_raised_as_it_is() -> None:
    async def work(item: int) -> None:
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        await for_each(range(200), work)
