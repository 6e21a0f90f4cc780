"""The loop around a reconciler: bounded, one at a time per key, undisturbed by a failing key, cleanly stopped."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from muster.controllers.runner import Requeue, Runner
from muster.controllers.slots import Slots
from muster.controllers.workqueue import BackOff, WorkQueue
from muster.kube.errors import Conflict, NamespaceTerminating, error_from_answer
from tests.controllers.fake_clock import FakeClock, settle


class Recording:
    """A reconciler that waits for a go, counts its calls and answers as the test says."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.active: Counter[str] = Counter()
        self.most_active = 0
        self.go = asyncio.Event()
        self.answer: Callable[[str, int], Requeue | None] = lambda key, call: None

    async def reconcile(self, key: str) -> Requeue | None:
        self.calls[key] += 1
        self.active[key] += 1
        self.most_active = max(self.most_active, self.active.total())
        assert self.active[key] == 1, f"{key} is worked on twice at the same time"
        try:
            await self.go.wait()
            return self.answer(key, self.calls[key])
        finally:
            self.active[key] -= 1


@asynccontextmanager
async def running(
    reconciler: Recording, clock: FakeClock, concurrency: int = 3
) -> AsyncIterator[tuple[WorkQueue, asyncio.Task[None]]]:
    queue = WorkQueue(clock=clock, back_off=BackOff(first=1, factor=2, longest=60))
    task = asyncio.create_task(Runner("test", reconciler, queue, slots=Slots(concurrency), clock=clock).run())
    try:
        yield queue, task
    finally:
        queue.close()
        reconciler.go.set()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_many_keys_run_at_once_but_not_more_than_the_bound() -> None:
    reconciler = Recording()
    async with running(reconciler, FakeClock(), concurrency=3) as (queue, _):
        for number in range(10):
            queue.add(f"key-{number}")
        await settle()
        assert reconciler.active.total() == 3
        reconciler.go.set()
        await settle(60)
        assert reconciler.calls.total() == 10
        assert reconciler.most_active == 3


async def test_changes_during_a_reconcile_lead_to_exactly_one_more() -> None:
    reconciler = Recording()
    async with running(reconciler, FakeClock()) as (queue, _):
        queue.add("a")
        await settle()
        for _ in range(5):
            queue.add("a")
        reconciler.go.set()
        await settle()
        assert reconciler.calls["a"] == 2


async def test_a_requeue_brings_the_key_back_at_its_time() -> None:
    reconciler, clock = Recording(), FakeClock()
    reconciler.go.set()
    reconciler.answer = lambda key, call: Requeue(30) if call == 1 else None
    async with running(reconciler, clock) as (queue, _):
        queue.add("a")
        await settle()
        await clock.advance(29)
        assert reconciler.calls["a"] == 1
        await clock.advance(1)
        assert reconciler.calls["a"] == 2
        await clock.advance(1000)
        assert reconciler.calls["a"] == 2


async def test_a_failing_key_backs_off_alone() -> None:
    reconciler, clock = Recording(), FakeClock()
    reconciler.go.set()

    def answer(key: str, call: int) -> None:
        if key == "bad" and call < 4:
            raise RuntimeError("no")

    reconciler.answer = answer
    async with running(reconciler, clock) as (queue, _):
        queue.add("bad")
        queue.add("good")
        await settle()
        assert reconciler.calls == {"bad": 1, "good": 1}
        seen = []
        for _ in range(8):
            await clock.advance(1)
            seen.append(reconciler.calls["bad"])
        assert seen == [2, 2, 3, 3, 3, 3, 4, 4], "1, 2 and 4 seconds between the tries, none after the success"


async def test_conflicts_and_ending_namespaces_are_no_news_and_any_other_error_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors = {
        "conflict": Conflict(409, "Conflict", "changed in between"),
        "ending": NamespaceTerminating(403, "Forbidden", "namespace team is being terminated"),
        "error": ValueError("broken"),
    }
    reconciler, clock = Recording(), FakeClock()
    reconciler.go.set()

    def answer(key: str, call: int) -> None:
        if call == 1:
            raise errors[key]

    reconciler.answer = answer
    with caplog.at_level(logging.INFO):
        async with running(reconciler, clock) as (queue, _):
            for key in errors:
                queue.add(key)
            await settle()
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["test error"]


GONE = (
    b'{"reason": "NotFound", "message": "podgroups \\"p\\" not found", "details": {"name": "p", "kind": "podgroups"}}'
)


async def test_what_goes_with_its_owner_is_no_news_unless_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    reconciler, clock = Recording(), FakeClock()
    reconciler.go.set()

    def answer(key: str, call: int) -> None:
        if call != 3:
            raise error_from_answer(404, GONE)

    reconciler.answer = answer
    with caplog.at_level(logging.INFO):
        async with running(reconciler, clock) as (queue, _):
            queue.add("a")
            await settle()
            for _ in range(2):
                await clock.advance(9)
            assert (reconciler.calls["a"], caplog.records) == (3, []), "the third look went well"
            queue.add("a")
            await settle()
            for _ in range(9):
                assert not caplog.records
                await clock.advance(1)
            assert reconciler.calls["a"] == 7
            await clock.advance(8)
    (said,) = caplog.records
    assert (said.levelname, said.getMessage()) == (
        "WARNING",
        'test a: 404 NotFound: podgroups "p" not found; again in 16.0s',
    )


@pytest.mark.parametrize(
    "answer",
    [b"404 page not found", b'{"reason": "NotFound", "message": "the server could not find it", "details": {}}'],
    ids=["no such path", "no such kind"],
)
async def test_a_kind_that_is_not_served_is_told_at_once(answer: bytes, caplog: pytest.LogCaptureFixture) -> None:
    reconciler = Recording()
    reconciler.go.set()

    def refuse(key: str, call: int) -> None:
        raise error_from_answer(404, answer)

    reconciler.answer = refuse
    with caplog.at_level(logging.INFO):
        async with running(reconciler, FakeClock()) as (queue, _):
            queue.add("a")
            await settle()
    (said,) = caplog.records
    assert said.levelname == "WARNING"
    assert "is its CRD installed?" in said.getMessage()


async def test_cancelling_the_runner_ends_the_reconciles_before_it_returns() -> None:
    reconciler = Recording()
    async with running(reconciler, FakeClock()) as (queue, task):
        queue.add("a")
        queue.add("b")
        await settle()
        assert reconciler.active.total() == 2
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert reconciler.active.total() == 0


async def test_closing_the_queue_lets_the_running_reconciles_finish() -> None:
    reconciler = Recording()
    async with running(reconciler, FakeClock()) as (queue, task):
        queue.add("a")
        await settle()
        queue.close()
        await settle()
        assert not task.done()
        reconciler.go.set()
        await task
        assert reconciler.calls["a"] == 1


async def test_a_look_that_waits_for_somebody_steps_out_of_its_slot() -> None:
    reconciler, slots = Recording(), Slots(2)
    waiting = asyncio.Event()

    class SteppingOut:
        async def reconcile(self, key: str) -> Requeue | None:
            if key.startswith("slow"):
                with slots.outside():
                    await waiting.wait()
            return await reconciler.reconcile(key)

    queue = WorkQueue(clock=FakeClock())
    task = asyncio.create_task(Runner("test", SteppingOut(), queue, slots=slots).run())
    for number in range(5):
        queue.add(f"slow-{number}")
    await settle()
    for number in range(3):
        queue.add(f"fast-{number}")
    await settle()
    assert set(reconciler.active) == {"fast-0", "fast-1"}, "two at once, however many are outside"
    waiting.set()
    reconciler.go.set()
    await settle(60)
    assert reconciler.calls.total() == 8
    queue.close()
    await task
