"""What the Jobs API client puts on the wire, and what it makes of answers that no healthy dashboard gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import httpx
import pytest

from muster.ray.job_info import JobStatus, Submission
from muster.ray.jobs_api import DashboardError, DashboardUnreachable, RayApiError, RayJobsClient, SubmissionRefused

Call = Callable[[RayJobsClient], Awaitable[object]]

CALLS: dict[str, Call] = {
    "health": lambda client: client.health(),
    "version": lambda client: client.version(),
    "submit": lambda client: client.submit(Submission("s", "x")),
    "get": lambda client: client.get("s"),
    "stop": lambda client: client.stop("s"),
    "logs": lambda client: client.logs("s"),
    "tail": lambda client: client.tail("s", lambda _: None),
}


class Server:
    """Answers every request with the same status and body, but for a method that has its own; remembers what it was
    asked.
    """

    def __init__(self) -> None:
        self.status, self.body = 200, "{}"
        self.to: dict[str, tuple[int, str]] = {}
        self.requests: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = next((int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")), 0)
        self.requests.append(head + (await reader.readexactly(length)).decode())
        status, text = self.to.get(head.partition(" ")[0], (self.status, self.body))
        body = text.encode()
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    async with listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


async def asked(server: Server, call: Call, base: str = "", token: str | None = None) -> str:
    """Make the call; return the one request that it led to."""
    async with RayJobsClient(f"{server.url}{base}", token) as client:
        with suppress(RayApiError):
            await call(client)
    return server.requests[0]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("health", "GET /api/gcs_healthz"),
        ("version", "GET /api/version"),
        ("submit", "POST /api/jobs/"),
        ("get", "GET /api/jobs/s"),
        ("stop", "POST /api/jobs/s/stop"),
        ("logs", "GET /api/jobs/s/logs"),
        ("tail", "GET /api/jobs/s/logs/tail"),
    ],
)
@pytest.mark.parametrize("base", ["", "/api/v1/namespaces/ns/services/svc:dashboard/proxy"])
async def test_the_path_of_each_call_also_behind_a_proxy(server: Server, name: str, line: str, base: str) -> None:
    method, _, path = line.partition(" ")
    assert (await asked(server, CALLS[name], base)).startswith(f"{method} {base}{path} HTTP/1.1\r\n")


async def test_an_id_can_not_leave_its_place_in_the_path(server: Server) -> None:
    request = await asked(server, lambda client: client.get("../a b?c#d/e"))
    assert request.startswith("GET /api/jobs/..%2Fa%20b%3Fc%23d%2Fe HTTP/1.1\r\n")


@pytest.mark.parametrize("name", ["get", "submit", "tail"])
async def test_a_token_is_sent_as_ray_expects_it(server: Server, name: str) -> None:
    assert "x-ray-authorization: Bearer secret\r\n" in await asked(server, CALLS[name], token="secret")


async def test_a_token_of_other_bytes_than_ascii_is_sent_as_it_is(server: Server) -> None:
    async with RayJobsClient(server.url, "t\xfc\udcff") as client:
        with pytest.raises(DashboardError):
            await client.get("s")
    assert "x-ray-authorization: Bearer t\xc3\xbc\xff\r\n" in server.requests[0]


async def test_without_a_token_none_is_sent(server: Server) -> None:
    assert "authorization" not in (await asked(server, CALLS["get"])).lower()


@pytest.mark.parametrize("token", ["hush\nhush", "hush\0hush", "hush\udcff\n"])
async def test_a_token_that_can_not_be_sent_is_not_told(server: Server, token: str) -> None:
    async with RayJobsClient(server.url, token) as client:
        for call in CALLS.values():
            with pytest.raises(DashboardUnreachable) as refusal:
                await call(client)
            assert "hush" not in str(refusal.value)


async def test_a_submission_is_sent_as_data(server: Server) -> None:
    submission = Submission("s", "echo '$(x)'", {"pip": ["a"]}, {"k": "v"}, 1, 0.5, {"r": 2})
    body = (await asked(server, lambda client: client.submit(submission))).partition("\r\n\r\n")[2]
    assert json.loads(body) == submission.to_document()


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
async def test_proxies_of_the_environment_are_not_used(
    server: Server, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:1")
    assert (await asked(server, CALLS["get"])).startswith("GET /api/jobs/s ")


@pytest.mark.parametrize(
    ("name", "status", "body", "error"),
    [
        ("health", 200, "starting", "starting"),
        ("health", 503, "not now", "503: not now"),
        ("version", 200, "[]", "not a version"),
        ("version", 200, "<html>", "not JSON: <html>"),
        ("get", 200, "<html>", "not JSON: <html>"),
        ("get", 200, '{"status": "EXPLODED"}', "'EXPLODED' is no state of a Ray job"),
        ("get", 200, "[]", "must be an object"),
        (
            "get",
            200,
            '{"status": "SUCCEEDED", "submission_id": "another"}',
            "200: of a job of another id than s: another",
        ),
        ("get", 200, '{"status": "SUCCEEDED", "submission_id": 5, "job_id": "02000000"}', "than s: 5, 02000000$"),
        ("get", 500, "Traceback", "500: Traceback"),
        ("get", 302, "", "302"),
        ("logs", 200, "{}", "no logs"),
        ("logs", 200, "[]", "no logs"),
        ("stop", 500, "boom", "500: boom"),
    ],
)
async def test_an_answer_of_the_wrong_kind_is_an_error_with_its_text(
    server: Server, name: str, status: int, body: str, error: str
) -> None:
    server.status, server.body = status, body
    async with RayJobsClient(server.url) as client:
        with pytest.raises(DashboardError, match=error):
            await CALLS[name](client)


async def test_the_end_of_a_long_answer_is_kept_for_it_has_the_reason(server: Server) -> None:
    server.status, server.body = 500, "x" * 100_000 + "the reason"
    async with RayJobsClient(server.url) as client:
        with pytest.raises(DashboardError) as caught:
            await client.get("s")
    assert caught.value.message.endswith("the reason")
    assert len(caught.value.message) < 3000


async def test_a_refusal_is_told_from_a_duplicate(server: Server) -> None:
    server.status, server.body = 400, "TypeError: metadata"
    async with RayJobsClient(server.url) as client:
        with pytest.raises(SubmissionRefused):
            await client.submit(Submission("s", "x"))
    assert [request.split(" ", 1)[0] for request in server.requests] == ["POST"]


@pytest.mark.parametrize(("status", "text"), [(400, "Please use a different submission_id."), (500, "Traceback ...")])
async def test_after_a_doubtful_answer_the_job_is_looked_up(server: Server, status: int, text: str) -> None:
    server.status, server.body = status, text
    async with RayJobsClient(server.url) as client:
        with pytest.raises(DashboardError):
            await client.submit(Submission("s", "x"))
    assert [request.split(" HTTP")[0] for request in server.requests] == ["POST /api/jobs/", "GET /api/jobs/s"]


HAS_IT = (200, '{"submission_id": "s", "status": "PENDING"}')
HAS_IT_NOT = (404, "Job s does not exist")


@pytest.mark.parametrize(
    "answer",
    [
        '{"job_id": "s", "submission_id": "s"}',
        '{"job_id": "s"}',
        '{"submission_id": "s"}',
        '{"job_id": "01000000", "submission_id": "s", "more": []}',
    ],
)
async def test_what_any_ray_answers_to_a_submission_is_believed(server: Server, answer: str) -> None:
    server.to["POST"] = (200, answer)
    async with RayJobsClient(server.url) as client:
        assert await client.submit(Submission("s", "x")) == "s"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "answer", "told"),
    [
        (200, "<html>Please log in</html>", "the dashboard answered 200: not JSON: <html>Please log in</html>"),
        (202, "", "the dashboard answered 202: not JSON"),
        (204, "", "the dashboard answered 204: not JSON"),
        (200, "[]", r"the dashboard answered 200: not what Ray says of a submission: \[\]"),
        (200, "null", "not what Ray says of a submission: null"),
        (200, '"s"', "not what Ray says of a submission"),
        (200, '{"error": "log in"}', "not what Ray says of a submission"),
        (200, '{"submission_id": "another"}', "not what Ray says of a submission"),
    ],
)
async def test_a_submission_is_taken_only_if_ray_says_so_or_has_the_job(
    server: Server, status: int, answer: str, told: str
) -> None:
    server.to = {"POST": (status, answer), "GET": HAS_IT_NOT}
    async with RayJobsClient(server.url) as client:
        with pytest.raises(DashboardError, match=told) as refusal:
            await client.submit(Submission("s", "x"))
        assert not isinstance(refusal.value, SubmissionRefused)
        server.to["GET"] = HAS_IT
        assert await client.submit(Submission("s", "x")) == "s"


@pytest.mark.parametrize(
    "ids",
    [
        {"submission_id": "s"},
        {"submission_id": "s", "job_id": None},
        {"submission_id": "s", "job_id": "02000000"},
        pytest.param({"submission_id": None, "job_id": "s"}, id="a driver that nobody submitted"),
        pytest.param({"submission_id": "raysubmit_x", "job_id": "s"}, id="asked for by its driver"),
        pytest.param({}, id="Ray 1"),
    ],
)
async def test_what_any_ray_answers_about_the_job_is_believed(server: Server, ids: dict[str, str | None]) -> None:
    server.body = json.dumps({"status": "RUNNING", **ids})
    async with RayJobsClient(server.url) as client:
        assert (await client.get("s")).status is JobStatus.RUNNING


async def test_a_long_id_of_another_job_is_told_in_short_and_as_text(server: Server) -> None:
    server.body = json.dumps({"status": "RUNNING", "submission_id": "\ud800" + "x" * 100_000})
    async with RayJobsClient(server.url) as client:
        with pytest.raises(DashboardError) as refusal:
            await client.get("s")
    assert len(str(refusal.value).encode()) < 1000


async def test_a_connection_that_closes_without_an_answer_is_unreachable() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with RayJobsClient(f"http://127.0.0.1:{port}") as client:
            for name, call in CALLS.items():
                with pytest.raises(DashboardUnreachable, match="log stream" if name == "tail" else "api"):
                    await call(client)


async def test_a_dashboard_that_does_not_answer_in_time_is_unreachable() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with RayJobsClient(f"http://127.0.0.1:{port}", timeout=0.1) as client:
            with pytest.raises(DashboardUnreachable, match="ReadTimeout"):
                await client.get("s")
            with pytest.raises(DashboardUnreachable, match="ReadTimeout"):
                await client.tail("s", print)


@pytest.mark.parametrize("name", ["health", "version", "get", "logs", "stop", "submit"])
@pytest.mark.parametrize("status", [200, 500])
async def test_no_answer_is_read_beyond_what_a_small_pod_can_hold(server: Server, name: str, status: int) -> None:
    server.status, server.body = status, '{"logs": "' + "x" * (2 << 20) + '"}'
    async with RayJobsClient(server.url) as client:
        with pytest.raises(DashboardError, match="longer than 2 MiB"):
            await CALLS[name](client)


async def test_an_answer_that_only_trickles_is_none() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        with suppress(OSError):
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)

    async with await asyncio.start_server(trickle, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with RayJobsClient(f"http://127.0.0.1:{port}", timeout=0.1) as client, asyncio.timeout(10):
            with pytest.raises(DashboardUnreachable, match="only trickles"):
                await client.get("s")


@pytest.mark.parametrize("name", ["submit", "get", "stop", "logs", "tail"])
@pytest.mark.parametrize("submission_id", ["x" * 70_000, "ü" * 1400, "", ".", "..", "\ud800"])
async def test_an_id_that_no_url_can_have_is_told_as_such(server: Server, name: str, submission_id: str) -> None:
    calls: dict[str, Call] = {
        "submit": lambda client: client.submit(Submission(submission_id, "x")),
        "get": lambda client: client.get(submission_id),
        "stop": lambda client: client.stop(submission_id),
        "logs": lambda client: client.logs(submission_id),
        "tail": lambda client: client.tail(submission_id, lambda _: None),
    }
    async with RayJobsClient(server.url) as client:
        with pytest.raises(RayApiError, match="URL") as refusal:
            await calls[name](client)
    assert len(str(refusal.value)) < 1000
    assert server.requests == []


@pytest.mark.parametrize(
    "error", [httpx.InvalidURL("x"), httpx.StreamClosed(), httpx.CookieConflict("x"), ValueError()]
)
@pytest.mark.parametrize("name", CALLS)
async def test_whatever_the_http_library_raises_is_an_error_of_the_api(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str, error: Exception
) -> None:
    async with RayJobsClient(server.url) as client:

        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(httpx.AsyncClient, "stream", fail)
        with pytest.raises(DashboardUnreachable, match=type(error).__name__):
            await CALLS[name](client)
