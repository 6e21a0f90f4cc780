"""Running an informer for the length of a block, and waiting until something holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from muster.kube.informer import Change, Informer


@asynccontextmanager
async def running(*informers: Informer[Any]) -> AsyncIterator[None]:
    """Run informers; inside the block they have synced."""
    tasks = [asyncio.create_task(informer.run()) for informer in informers]
    try:
        for informer in informers:
            await informer.wait_synced(20)
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def eventually(holds: Callable[[], object], what: str = "the condition", deadline: float = 60.0) -> None:
    """Wait until `holds` is true; AssertionError when it is not within the deadline (seconds)."""
    try:
        async with asyncio.timeout(deadline):
            while not holds():  # noqa: ASYNC110 - the condition is the informer's, which has no event to wait for
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"{what} does not hold within {deadline} s") from None


class Heard:
    """A subscriber that remembers what it heard, as (kind, name)."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str]] = []

    def __call__(self, change: Change[Any]) -> None:
        """Remember a change."""
        self.changes.append((change.kind.value, change.object.metadata.name))
