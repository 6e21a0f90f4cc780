"""Writes of one kind, keyed by object.

A key that is put is written soon: at most one write per key at a time, equal keys in the queue once, so that of many
changes to one object only the newest state is written. A write that fails is tried again with a growing pause until it
succeeds, its object is gone, or the server calls it invalid; the writer reads the object's latest state each time. A
writer that raises what nobody foresaw is logged and tried again too: one object must not stop the others.

What is put later is nothing that anybody waits for: when it is due it gives way to what is urgent, wherever that is
written, and only a few such keys are written at a time.

Who waits for a write (`settled`) does not wait as long: it may be refused for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from muster.engine.backoff import Backoff
from muster.engine.clock import Clock
from muster.kube.errors import ApiError, Invalid, NotFound

logger = logging.getLogger(__name__)

PATIENCE: Final = 5
"""How many writes may fail before whoever waits for one is told so."""
_PATIENT: Final = 4
"""How many keys that were put later are written at a time."""


@dataclass(slots=True)
class _Wait:
    """Somebody waits for a key, until `failures` more writes of it have failed."""

    done: asyncio.Future[bool]
    failures: int


@dataclass(slots=True)
class _Timer:
    """A key that is due at `due`, a time on the clock that later news may move; then its task ends."""

    due: float
    task: asyncio.Task[None]


async def _at_once() -> None:
    """Gives way to nothing."""


class WriteQueue:
    """Runs `write(key)` for every key put, `concurrency` keys at a time.

    `write` compares and writes what is needed now; it may raise ApiError. `give_way` returns when a key that was put
    later may be written.
    """

    def __init__(
        self,
        write: Callable[[str], Awaitable[None]],
        clock: Clock,
        *,
        name: str,
        concurrency: int = 10,
        backoff: Backoff | None = None,
        give_way: Callable[[], Awaitable[None]] = _at_once,
    ) -> None:
        self._write = write
        self._clock = clock
        self._name = name
        self._concurrency = concurrency
        self._backoff = backoff or Backoff(first=0.1, limit=30.0)
        self._give_way = give_way
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._due: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self._active: set[str] = set()
        self._failures: dict[str, int] = {}
        self._open: set[str] = set()
        self._waits: dict[str, list[_Wait]] = {}
        self._later: dict[str, _Timer] = {}

    def put(self, key: str) -> None:
        """Have `key` written soon."""
        if (timer := self._later.pop(key, None)) is not None:
            timer.task.cancel()
        self._open.add(key)
        if key in self._waiting:
            return
        self._waiting.add(key)
        if key not in self._active:
            self._ready.put_nowait(key)

    def put_later(self, key: str, seconds: float, *, at_most: float | None = None) -> None:
        """Have `key` due after `seconds`, together with what changes until then, or written with the next `put`.

        With `at_most` it is due once nothing has been put later for `seconds`, but not later than that (seconds). It is
        written when nothing urgent has to be.
        """
        if key in self._waiting:
            return
        due, timer = self._clock.now() + seconds, self._later.get(key)
        if timer is not None and timer.due <= due:
            timer.due = timer.due if at_most is None else due
            return
        if timer is not None:
            timer.task.cancel()
        self._open.add(key)
        longest = seconds if at_most is None else at_most
        task = asyncio.get_running_loop().create_task(self._tell_when_due(key, longest))
        self._later[key] = _Timer(due, task)

    async def _tell_when_due(self, key: str, longest: float) -> None:
        """Wait until its time has come, for `longest` seconds at the most, wherever the clock is set to."""
        slept = 0.0
        while (rest := min(self._later[key].due - self._clock.now(), longest - slept)) > 0:
            await self._clock.sleep(rest)
            slept += rest
        self._due.put_nowait(key)

    async def settled(self, key: str) -> bool:
        """Return true once nothing is left to write for `key`: written, or needless.

        False when the server calls it invalid, or when `PATIENCE` writes have failed meanwhile; it is tried on all the
        same.
        """
        if key not in self._open:
            return True
        wait = _Wait(asyncio.get_running_loop().create_future(), PATIENCE)
        self._waits.setdefault(key, []).append(wait)
        return await wait.done

    def is_writing(self, key: str) -> bool:
        """Tell whether a write of `key` is under way: what it comes to is not shown yet."""
        return key in self._active

    def is_open(self, key: str) -> bool:
        """Tell whether `key` is being written or waits to be."""
        return key in self._open

    @property
    def idle(self) -> bool:
        """Tell whether nothing is being written or waits to be."""
        return not self._open

    async def run(self) -> None:
        """Write until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._concurrency):
                    group.create_task(self._work(group))
                for _ in range(min(_PATIENT, self._concurrency)):
                    group.create_task(self._work_patiently(group))
        finally:
            for timer in self._later.values():
                timer.task.cancel()

    async def _work(self, group: asyncio.TaskGroup) -> None:
        while True:
            key = await self._ready.get()
            self._waiting.discard(key)
            await self._take(key, group)

    async def _work_patiently(self, group: asyncio.TaskGroup) -> None:
        while True:
            key = await self._due.get()
            await self._give_way()
            timer = self._later.get(key)
            if timer is None or not timer.task.done():
                continue  # put, and perhaps put later once more, meanwhile
            del self._later[key]
            if key in self._active:
                self._waiting.add(key)
            else:
                await self._take(key, group)

    async def _take(self, key: str, group: asyncio.TaskGroup) -> None:
        self._active.add(key)
        pause = await self._attempt(key)
        if pause is None:
            self._release(key)
        else:
            group.create_task(self._retry(key, pause))

    async def _attempt(self, key: str) -> float | None:
        """Write once; return the pause before the next try, or None when there is none."""
        try:
            await self._write(key)
        except NotFound:
            pass
        except Invalid as error:
            logger.error("%s: the server refuses %s: %s", self._name, key, error)
            self._answer(key, done=False)
        except ApiError as error:
            pause = self._pause(key)
            logger.info("%s: %s will be written again in %.1f s: %s", self._name, key, pause, error)
            return pause
        except Exception:
            pause = self._pause(key)
            logger.exception("%s: %s can't be written; again in %.1f s", self._name, key, pause)
            return pause
        self._failures.pop(key, None)
        return None

    def _pause(self, key: str) -> float:
        self._failures[key] = self._failures.get(key, 0) + 1
        self._answer_the_impatient(key)
        return self._backoff.pause(self._failures[key])

    async def _retry(self, key: str, pause: float) -> None:
        await self._clock.sleep(pause)
        self._waiting.add(key)
        self._release(key)

    def _release(self, key: str) -> None:
        self._active.discard(key)
        if key in self._waiting:
            self._ready.put_nowait(key)
        elif key not in self._later:
            self._open.discard(key)
            self._answer(key, done=True)

    def _answer(self, key: str, *, done: bool) -> None:
        for wait in self._waits.pop(key, ()):
            if not wait.done.done():
                wait.done.set_result(done)

    def _answer_the_impatient(self, key: str) -> None:
        waits = self._waits.pop(key, [])
        for wait in waits:
            wait.failures -= 1
            if not wait.failures and not wait.done.done():
                wait.done.set_result(False)
        if still := [wait for wait in waits if wait.failures and not wait.done.done()]:
            self._waits[key] = still
