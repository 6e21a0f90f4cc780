"""What nodes really use, asked of Prometheus for the plugin `usage`.

Nothing is asked unless the configuration names the plugin. A node's series is known by its `instance`: the node's name,
with or without a port. Averages are over ten minutes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp

from muster.engine.clock import Clock
from muster.engine.configuration_source import ConfigurationSource
from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.plugins.arguments import duration
from muster.scheduler.plugins.usage import Usage
from muster.scheduler.specs import NodeUsage

logger = logging.getLogger(__name__)

PERIOD = "10m"
CPU = f'100 - 100 * avg_over_time((avg by (instance) (rate(node_cpu_seconds_total{{mode="idle"}}[5m])))[{PERIOD}:30s])'
MEMORY = f"100 * avg_over_time((1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes)[{PERIOD}:30s])"

Metrics = Mapping[str, str]
Ask = Callable[[Metrics, str], Awaitable[dict[str, float]]]


class NodeUsageReader:
    """Keeps the model's figures of node usage current, at the interval that the configuration states.

    `put` gets a node's name and its usage. `ask` answers one query with a value for each instance.
    """

    def __init__(
        self, source: ConfigurationSource, clock: Clock, put: Callable[[str, NodeUsage], None], ask: Ask | None = None
    ) -> None:
        self._source = source
        self._clock = clock
        self._put = put
        self._ask = ask or ask_prometheus
        self._failing = False

    async def run(self) -> None:
        """Read until cancelled. What fails is said once, and tried again at the next interval."""
        while True:
            configuration = self._source.current
            if wants_usage(configuration):
                await self._read(configuration.metrics)
            await self._clock.sleep(_interval(configuration.metrics))

    async def _read(self, metrics: Metrics) -> None:
        try:
            cpu, memory = await self._ask(metrics, CPU), await self._ask(metrics, MEMORY)
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            if not self._failing:
                logger.warning("the nodes' usage can't be read from %s: %r", metrics.get("address"), error)
            self._failing = True
            return
        self._failing = False
        for instance in sorted(cpu.keys() & memory.keys()):
            self._put(instance.partition(":")[0], NodeUsage(cpu[instance], memory[instance], self._clock.now()))


def wants_usage(configuration: SchedulerConfiguration) -> bool:
    """Whether anything reads the figures, and there is somebody to ask."""
    named = any(option.name == Usage.name for tier in configuration.tiers for option in tier)
    return named and bool(configuration.metrics.get("address"))


def _interval(metrics: Metrics) -> float:
    try:
        seconds = duration(metrics.get("interval", "30s"))
    except ValueError:
        return 30.0
    return max(1.0, seconds)


async def ask_prometheus(metrics: Metrics, query: str) -> dict[str, float]:
    """The value of an instant query for each instance. Raises aiohttp.ClientError, TimeoutError or ValueError."""
    address = metrics["address"].rstrip("/")
    verify = metrics.get("tls.insecureSkipVerify", "").lower() != "true"
    timeout = aiohttp.ClientTimeout(total=10)
    async with (
        aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session,
        session.get(f"{address}/api/v1/query", params={"query": query}, ssl=verify) as response,
    ):
        return values_by_instance(await response.json())


def values_by_instance(answer: Any) -> dict[str, float]:
    """The values of a vector, as Prometheus answers. Raises ValueError, KeyError or TypeError for anything else."""
    if answer["status"] != "success":
        raise ValueError(f"the query failed: {answer.get('error')}")
    found: dict[str, float] = {}
    for series in answer["data"]["result"]:
        value = float(series["value"][1])
        if math.isfinite(value):
            found[series["metric"]["instance"]] = value
    return found
