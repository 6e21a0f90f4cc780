from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from muster.engine.configuration_source import FixedConfiguration
from muster.engine.node_usage import CPU, MEMORY, NodeUsageReader, ask_prometheus, values_by_instance, wants_usage
from muster.scheduler.conf import SchedulerConfiguration, load_configuration
from muster.scheduler.specs import NodeUsage
from tests.engine.manual_clock import ManualClock

ADDRESS = "http://prometheus.example"


def conf(*plugins: str, **metrics: str) -> SchedulerConfiguration:
    named = [{"name": name} for name in plugins]
    return load_configuration({"actions": "allocate", "tiers": [{"plugins": named}], "metrics": metrics})


def vector(**values: str) -> dict[str, Any]:
    result = [{"metric": {"instance": name}, "value": [1, value]} for name, value in values.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@pytest.mark.parametrize(
    ("configuration", "wanted"),
    [
        (conf("usage", type="prometheus", address=ADDRESS), True),
        (conf("usage"), False),
        (conf("gang", address=ADDRESS), False),
    ],
)
def test_nodes_are_asked_for_only_if_a_plugin_reads_them(configuration: SchedulerConfiguration, wanted: bool) -> None:
    assert wants_usage(configuration) is wanted


class Prometheus:
    """Answers by query, or raises."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, float]] = {CPU: {}, MEMORY: {}}
        self.failure: Exception | None = None
        self.asked = 0

    async def __call__(self, metrics: object, query: str) -> dict[str, float]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return self.answers[query]


@asynccontextmanager
async def reading(
    configuration: SchedulerConfiguration, ask: Prometheus, clock: ManualClock
) -> AsyncIterator[list[tuple[str, NodeUsage]]]:
    found: list[tuple[str, NodeUsage]] = []
    put: Callable[[str, NodeUsage], None] = lambda name, usage: found.append((name, usage))  # noqa: E731
    task = asyncio.create_task(NodeUsageReader(FixedConfiguration(configuration), clock, put, ask).run())
    try:
        await clock.advance(0)
        yield found
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_the_usage_of_each_node_is_told_at_the_interval_that_is_stated() -> None:
    clock, ask = ManualClock(), Prometheus()
    ask.answers = {CPU: {"a": 10.0, "b:9100": 20.0, "only-cpu": 1.0}, MEMORY: {"a": 30.0, "b:9100": 40.0}}
    async with reading(conf("usage", address=ADDRESS, interval="1m"), ask, clock) as found:
        assert found == [("a", NodeUsage(10, 30, clock.now())), ("b", NodeUsage(20, 40, clock.now()))]
        await clock.advance(59)
        assert ask.asked == 2
        await clock.advance(1)
        assert ask.asked == 4


async def test_what_fails_is_said_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    clock, ask = ManualClock(), Prometheus()
    ask.failure = aiohttp.ClientError("nobody there")
    async with reading(conf("usage", address=ADDRESS), ask, clock) as found:
        await clock.advance(30)
        assert [record.getMessage() for record in caplog.records if "usage" in record.getMessage()] == [
            f"the nodes' usage can't be read from {ADDRESS}: ClientError('nobody there')"
        ]
        ask.failure, ask.answers = None, {CPU: {"a": 1.0}, MEMORY: {"a": 2.0}}
        await clock.advance(30)
        assert [name for name, _ in found] == ["a"]


async def test_without_the_plugin_nobody_is_asked() -> None:
    clock, ask = ManualClock(), Prometheus()
    async with reading(conf("gang", address=ADDRESS), ask, clock):
        await clock.advance(90)
    assert ask.asked == 0


def test_an_answer_is_a_value_for_each_instance() -> None:
    assert values_by_instance(vector(a="12.5", b="NaN")) == {"a": 12.5}
    with pytest.raises(ValueError, match="bad query"):
        values_by_instance({"status": "error", "error": "bad query"})


async def test_prometheus_is_asked_over_http() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.query["query"])
        return web.json_response(vector(a="1.5"))

    app = web.Application()
    app.router.add_get("/api/v1/query", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        assert await ask_prometheus({"address": f"http://127.0.0.1:{port}/"}, CPU) == {"a": 1.5}
        assert asked == [CPU]
    finally:
        await runner.cleanup()
