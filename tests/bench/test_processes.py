"""What a program uses, and how its end is noticed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from bench.processes import Usage, ended, how_it_ended, process_id, resident, usage, waited
from tests.cluster.api_access import wait_until
from tests.cluster.process import Background, start

BUSY = "sum(range(10**7)); open('ready', 'w').close(); import time; time.sleep(600)"


def python(tmp_path: Path, code: str) -> Background:
    return start("program", [sys.executable, "-c", code], tmp_path)


@pytest.mark.parametrize(
    ("code", "words"),
    [("raise SystemExit(3)", "ended with status 3"), ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9")],
)
async def test_an_end_is_noticed_and_told(tmp_path: Path, code: str, words: str) -> None:
    pid = process_id(python(tmp_path, code))
    async with asyncio.timeout(60):
        await ended(pid)
    assert how_it_ended(pid) == words


async def test_an_end_before_anybody_waits_is_noticed_too(tmp_path: Path) -> None:
    pid = process_id(python(tmp_path, ""))
    await asyncio.to_thread(os.waitpid, pid, 0)
    async with asyncio.timeout(60):
        await ended(pid)
    assert how_it_ended(pid) == "ended"


async def test_a_process_that_lives_has_not_ended(tmp_path: Path) -> None:
    program = python(tmp_path, "import time; time.sleep(600)")
    waiting = asyncio.create_task(ended(process_id(program)))
    await asyncio.sleep(0)
    assert not waiting.done()
    program.stop(signal.SIGKILL)
    async with asyncio.timeout(60):
        await waiting


def test_what_a_script_starts_is_counted_with_it(tmp_path: Path) -> None:
    program = start("script", ["sh", "-c", f'{sys.executable} -c "{BUSY}"; true'], tmp_path)
    try:
        wait_until((tmp_path / "ready").exists, "the program has worked", 60.0)
        now, used = resident(process_id(program)), usage(process_id(program))
    finally:
        program.stop(signal.SIGKILL)
    assert used.cpu > 0.03
    assert 5 < now <= used.peak


def test_what_has_ended_has_its_processor_time_and_no_memory(tmp_path: Path) -> None:
    program = python(tmp_path, "sum(range(10**7))")
    pid = process_id(program)
    wait_until(lambda: not program.pid, "it has ended", 60.0)
    now, used = resident(pid), usage(pid)
    os.waitpid(pid, 0)
    assert used.cpu > 0.03
    assert (now, used.peak) == (0, 0)


def test_two_on_one_processor_wait_for_each_other(tmp_path: Path) -> None:
    code = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); any(iter(int, 1))"
    one = f'{sys.executable} -c "{code}"'
    program = start("pair", ["sh", "-c", f"{one} & {one}"], tmp_path)
    session = process_id(program)
    try:
        wait_until(lambda: waited(session) > 0.05, "they have waited", 60.0)
    finally:
        program.stop(signal.SIGKILL)


def test_usage_since_then_keeps_the_peak() -> None:
    assert Usage(3.0, 80.0).since(Usage(1.0, 50.0)) == Usage(2.0, 80.0)
