"""The webhook's handler: what the judge says is said, and what the judge can't say holds up nobody."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import pytest

from muster.admission.judgement import Judge, Judgement
from muster.admission.webhook import ForgetfulServer, _no_refusal, _safely
from muster.kube.resource import RAYJOBS
from tests.cluster.ports import free_ports


class BrokenJudge:
    """A judge with a fault."""

    async def judge(self, *_: Any) -> Judgement:
        raise RecursionError("a fault of ours")


async def test_a_fault_of_ours_lets_the_object_in_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    new = {"metadata": {"namespace": "ns", "name": "odd"}}
    judgement = await _safely(cast("Judge", BrokenJudge()), RAYJOBS, new, None)
    assert judgement.refusals == ()
    assert judgement.warnings
    assert "ns/odd could not be judged" in caplog.text


def test_a_refusal_is_no_error_in_the_log_and_anything_else_is() -> None:
    def record(message: str) -> logging.LogRecord:
        return logging.LogRecord("kopf.objects", logging.ERROR, "", 0, message, None, None)

    assert not _no_refusal(record("Handler 'rayjobs' failed permanently: spec.x: is wrong"))
    assert _no_refusal(record("Handler 'rayjobs' failed with an exception and will stop now: x"))


@pytest.mark.parametrize("length", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"], ids=["known", "chunked"])
@pytest.mark.parametrize("abruptly", [False, True], ids=["closed", "reset"])
async def test_a_review_that_the_api_server_gives_up_on_while_it_is_read_is_one_quiet_line(
    length: bytes, abruptly: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def asked(*_: Any, **__: Any) -> Any:
        raise AssertionError("nobody is asked about half a review")

    (port,) = free_ports(1)
    server = ForgetfulServer(addr="127.0.0.1", port=port, insecure=True)
    with caplog.at_level(logging.INFO):
        async with aclosing(cast("AsyncGenerator[Any]", server(cast("Any", asked)))) as serving, asyncio.timeout(10):
            await anext(serving)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /rayjobs HTTP/1.1\r\nHost: muster\r\nExpect: 100-continue\r\n" + length + b"\r\n\r\n")
            assert b"100" in await reader.readline(), "it is about to read"
            writer.write(b"3\r\n{")
            await writer.drain()
            writer.transport.abort() if abruptly else writer.close()
            while not (said := [each for each in caplog.records if each.name != "aiohttp.access"]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert [(record.levelname, record.exc_info) for record in said] == [("INFO", None)]
    assert "gave up" in said[0].getMessage()
