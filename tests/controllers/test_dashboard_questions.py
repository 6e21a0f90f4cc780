"""Questions to dashboards: the connection of one serves the next, and none is kept for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from muster.api.job_status import JobStatus
from muster.controllers.dashboard import Dashboard
from muster.controllers.dashboard_questions import IDLE_SECONDS, DashboardQuestions
from muster.ray.jobs_api import ConnectionLost, DashboardUnreachable, JobNotFound, RayJobsClient
from tests.controllers.fake_clock import FakeClock, settle

HEAD = Dashboard("team", "demo-head-svc", head_ip="127.0.0.1")


class Head:
    """A dashboard that knows one job; `answers` are those that a connection gives before it breaks."""

    def __init__(self) -> None:
        self.answers = 1000
        self.connections = 0
        self.open = 0
        self.ended = asyncio.Event()
        """Set at the end of each connection."""
        self.port = 0
        self.questions: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            for _ in range(self.answers):
                self.questions.append((await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[0])
                known = "/known " in self.questions[-1]
                body = b'{"submission_id": "known", "status": "RUNNING"}' if known else b"no such job"
                status = "200 OK" if known else "404 Not Found"
                writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
            await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            self.open -= 1
            self.ended.set()

    async def left_open(self, number: int) -> None:
        """Wait until only so many connections are open."""
        async with asyncio.timeout(10):
            while self.open > number:
                self.ended.clear()
                await self.ended.wait()


class Resolver:
    """Leads all to one head."""

    def __init__(self, head: Head) -> None:
        self._head = head

    def address(self, dashboard: Dashboard) -> str:
        return f"127.0.0.1:{self._head.port}"

    def connect(self, dashboard: Dashboard) -> RayJobsClient:
        if dashboard.head_ip is None:
            raise ValueError("no address")
        return RayJobsClient(f"http://{self.address(dashboard)}", dashboard.token)


@pytest.fixture
async def head() -> AsyncIterator[Head]:
    head = Head()
    async with await asyncio.start_server(head.serve, "127.0.0.1", 0) as listening:
        head.port = listening.sockets[0].getsockname()[1]
        yield head


async def status(questions: DashboardQuestions, dashboard: Dashboard = HEAD, job: str = "known") -> JobStatus:
    return (await questions.ask(dashboard, lambda ray: ray.get(job))).status


async def test_one_connection_serves_all_questions_to_a_dashboard(head: Head) -> None:
    questions = DashboardQuestions(Resolver(head), FakeClock())
    assert [await status(questions) for _ in range(3)] == [JobStatus.RUNNING] * 3
    assert (head.connections, len(head.questions)) == (1, 3)


async def test_another_token_or_head_has_another_connection(head: Head) -> None:
    questions = DashboardQuestions(Resolver(head), FakeClock())
    for dashboard in (HEAD, replace(HEAD, token="secret"), replace(HEAD, head_ip="127.0.0.2"), HEAD):
        await status(questions, dashboard)
    assert head.connections == 3


async def test_questions_at_the_same_time_do_not_wait_for_each_other_and_leave_one_connection(head: Head) -> None:
    questions = DashboardQuestions(Resolver(head), FakeClock())
    both = asyncio.Barrier(2)

    async def together(ray: RayJobsClient) -> JobStatus:
        async with asyncio.timeout(10):
            await both.wait()
        return (await ray.get("known")).status

    answers = await asyncio.gather(*(questions.ask(HEAD, together) for _ in range(2)))
    assert answers == [JobStatus.RUNNING] * 2
    await head.left_open(1)
    assert await status(questions) is JobStatus.RUNNING
    assert head.connections == 2


async def test_a_connection_that_was_given_up_meanwhile_is_no_silence(head: Head) -> None:
    head.answers = 1
    questions = DashboardQuestions(Resolver(head), FakeClock())
    assert [await status(questions) for _ in range(3)] == [JobStatus.RUNNING] * 3
    assert head.connections == 3


async def test_a_new_connection_that_breaks_is_told(head: Head) -> None:
    head.answers = 0
    questions = DashboardQuestions(Resolver(head), FakeClock())
    with pytest.raises(ConnectionLost):
        await status(questions)
    assert head.connections == 1


async def test_a_job_that_is_not_there_is_an_answer(head: Head) -> None:
    questions = DashboardQuestions(Resolver(head), FakeClock())
    for _ in range(2):
        with pytest.raises(JobNotFound):
            await status(questions, job="unknown")
    assert await status(questions) is JobStatus.RUNNING
    assert head.connections == 1


async def test_what_goes_wrong_on_our_side_leaves_no_connection(head: Head) -> None:
    async def broken(ray: RayJobsClient) -> None:
        await ray.get("known")
        raise RuntimeError

    questions = DashboardQuestions(Resolver(head), FakeClock())
    with pytest.raises(RuntimeError):
        await questions.ask(HEAD, broken)
    await head.left_open(0)


async def test_an_address_that_is_none_is_told() -> None:
    questions = DashboardQuestions(Resolver(Head()), FakeClock())
    with pytest.raises(DashboardUnreachable, match="no address"):
        await status(questions, replace(HEAD, head_ip=None))


async def test_what_nobody_uses_is_closed(head: Head) -> None:
    clock = FakeClock()
    questions = DashboardQuestions(Resolver(head), clock)
    closing = asyncio.create_task(questions.close_idle())
    await settle()
    await status(questions)
    await clock.advance(IDLE_SECONDS - 1)
    assert head.open == 1
    await clock.advance(IDLE_SECONDS)
    await head.left_open(0)
    closing.cancel()
    await asyncio.wait([closing])


async def test_no_more_are_kept_than_allowed(head: Head) -> None:
    questions = DashboardQuestions(Resolver(head), FakeClock(), most_kept=1)
    await status(questions)
    other = replace(HEAD, service="other-head-svc")
    assert [await status(questions, other) for _ in range(2)] == [JobStatus.RUNNING] * 2
    assert head.connections == 3


async def test_at_the_end_all_are_closed_and_none_is_kept(head: Head) -> None:
    questions = DashboardQuestions(Resolver(head), FakeClock())
    closing = asyncio.create_task(questions.close_idle())
    await settle()
    await status(questions)
    closing.cancel()
    await asyncio.wait([closing])
    await head.left_open(0)
    assert await status(questions) is JobStatus.RUNNING
    await head.left_open(0)


async def test_one_that_can_not_be_closed_keeps_nobody_from_closing_the_others(
    head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    questions = DashboardQuestions(Resolver(head), clock)
    closing = asyncio.create_task(questions.close_idle())
    await settle()
    await status(questions)
    await status(questions, replace(HEAD, service="other-head-svc"))
    close, tried = RayJobsClient.aclose, []

    async def fail_first(client: RayJobsClient) -> None:
        tried.append(client)
        await close(client)
        if len(tried) == 1:
            raise OSError("broken pipe")

    monkeypatch.setattr(RayJobsClient, "aclose", fail_first)
    await clock.advance(2 * IDLE_SECONDS)
    await head.left_open(0)
    assert (len(tried), closing.done()) == (2, False)
    closing.cancel()
    await asyncio.wait([closing])
