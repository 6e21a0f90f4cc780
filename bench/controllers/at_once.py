"""Much of the same, some of it at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_AT_ONCE = 50


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[None]]) -> None:
    """Do the work for all items, for 50 at a time, in their order. The first error ends it, and is raised as it is."""
    waiting = iter(items)

    async def some() -> None:
        for item in waiting:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(some())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
