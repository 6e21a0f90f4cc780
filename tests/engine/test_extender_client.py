from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from muster.engine.extender_client import LARGEST_ANSWER, HttpExtenderClient
from muster.scheduler.extender_client import ExtenderError
from tests.extender_server import ExtenderServer, serving

PATIENT = 10.0


@pytest.fixture
def server() -> Iterator[ExtenderServer]:
    with serving() as found:
        yield found


@pytest.fixture
def client() -> Iterator[HttpExtenderClient]:
    found = HttpExtenderClient()
    yield found
    found.close()


def test_a_question_is_posted_as_json_and_the_answer_is_handed_back(
    server: ExtenderServer, client: HttpExtenderClient
) -> None:
    server.replies["predicate"] = lambda question: {"echo": question}
    answer = client.post(f"{server.url}/predicate", b'{"task": 1}', PATIENT)
    assert answer.body == b'{"echo": {"task": 1}}'
    assert 0 < answer.seconds < PATIENT
    assert server.headers[0]["content-type"] == "application/json"


def test_all_questions_go_over_one_connection(server: ExtenderServer, client: HttpExtenderClient) -> None:
    server.replies["a"] = server.replies["b"] = lambda _: {}
    for verb in ("a", "b", "a"):
        client.post(f"{server.url}/{verb}", b"{}", PATIENT)
    assert server.verbs() == ["a", "b", "a"]
    assert server.connections == 1


def test_a_connection_that_the_extender_has_closed_is_made_anew(client: HttpExtenderClient) -> None:
    for _ in range(2):
        with serving() as server:
            server.replies["a"] = lambda _: {"fine": True}
            assert client.post(f"{server.url}/a", b"{}", PATIENT).body == b'{"fine": true}'


@pytest.mark.parametrize("status", [404, 500, 204, 302])
def test_any_status_but_200_is_a_failure(server: ExtenderServer, client: HttpExtenderClient, status: int) -> None:
    server.replies["a"] = lambda _: status
    with pytest.raises(ExtenderError, match=f"^HTTP status {status}$"):
        client.post(f"{server.url}/a", b"{}", PATIENT)


def test_an_answer_that_hangs_is_waited_for_no_longer_than_allowed(
    server: ExtenderServer, client: HttpExtenderClient
) -> None:
    server.replies["a"] = server.hang
    began = time.monotonic()
    with pytest.raises(ExtenderError, match="no answer in time") as caught:
        client.post(f"{server.url}/a", b"{}", 0.1)
    assert time.monotonic() - began < PATIENT
    assert caught.value.seconds >= 0.1
    server.replies["b"] = lambda _: {}
    assert client.post(f"{server.url}/b", b"{}", PATIENT).body == b"{}"


def test_an_answer_that_comes_in_drops_is_not_waited_for_either(client: HttpExtenderClient) -> None:
    """Each read ends in time; only all of them together don't."""
    stop = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            try:
                for drop in b"HTTP/1.1 200 OK\r\nX-Endless: " + b"x" * 10_000:
                    if stop.wait(0.02):
                        return
                    connection.sendall(bytes([drop]))
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        try:
            with pytest.raises(ExtenderError, match="no answer in time"):
                client.post(f"http://127.0.0.1:{listener.getsockname()[1]}/a", b"{}", 0.2)
        finally:
            stop.set()
            thread.join()


def test_nobody_there_is_a_failure(client: HttpExtenderClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ExtenderError, match="ConnectError"):
        client.post(f"http://127.0.0.1:{port}/a", b"{}", PATIENT)


def test_an_address_that_is_none_is_a_failure(client: HttpExtenderClient) -> None:
    with pytest.raises(ExtenderError):
        client.post("http://[nowhere/a", b"{}", PATIENT)


def test_an_answer_longer_than_any_honest_one_is_a_failure(server: ExtenderServer, client: HttpExtenderClient) -> None:
    server.replies["a"] = lambda _: b" " * (LARGEST_ANSWER + 1)
    with pytest.raises(ExtenderError, match="longer than 10 MiB"):
        client.post(f"{server.url}/a", b"{}", PATIENT)


def test_what_fails_is_said_once_until_it_works_again(
    server: ExtenderServer, client: HttpExtenderClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "muster")
    address = server.url.replace("://", "://user:secret@")

    def ask(reply: object) -> None:
        server.replies["a"] = lambda _: reply
        try:
            client.post(f"{address}/a", b'{"task": "tenant-pod"}', PATIENT)
        except ExtenderError:
            return

    for reply in (500, 500, {"pod": "tenant-pod"}, 503):
        ask(reply)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("muster")]
    assert said == [
        f"the extender fails at {server.url}/a: HTTP status 500",
        f"the extender answers again at {server.url}/a",
        f"the extender fails at {server.url}/a: HTTP status 503",
    ]


def test_a_client_that_was_never_used_or_is_closed_twice_ends_quietly() -> None:
    client = HttpExtenderClient()
    client.close()
    client.close()
    assert [each for each in threading.enumerate() if each.name == "extender"] == []


def test_closing_ends_the_thread(server: ExtenderServer) -> None:
    client = HttpExtenderClient()
    server.replies["a"] = lambda _: {}
    client.post(f"{server.url}/a", b"{}", PATIENT)
    client.close()
    assert [each for each in threading.enumerate() if each.name == "extender"] == []
