"""The composition root: what the process as a whole is set up for, and when it works."""

from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from muster.app import FEW_COLLECTIONS, Component, Operator, operate, own_image, until_one_ends
from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.resource import PODS
from tests.operator_options import operator_options

BASE = Path(__file__).parents[1] / "manifests" / "base"
BOTH = frozenset({Component.CONTROLLERS, Component.SCHEDULER})
LEASES = {Component.CONTROLLERS: "muster-controllers", Component.SCHEDULER: "muster-scheduler"}

_DEEP = """
import json, sys, msgspec
from muster.app import DEEP_ENOUGH
from muster.controllers.context import ObservedRayCluster
from muster.kube.client import Page
from tests.operator_options import operator_options

sys.setrecursionlimit(DEEP_ENOUGH)
template = '{"a":' * 9_980 + '1' + '}' * 9_980
page = '{"metadata": {}, "items": [{"metadata": {"name": "deep"}, "spec": {"template": ' + template + '}}]}'
json.loads(page)  # as kopf reads
raw = msgspec.json.decode(page, type=Page).items[0]
one, other = (msgspec.json.decode(raw, type=ObservedRayCluster) for _ in range(2))
assert one == other
"""


def test_the_deepest_object_that_an_api_server_takes_can_be_read() -> None:
    done = subprocess.run([sys.executable, "-c", _DEEP], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_submitter_gets_the_image_of_the_operator_whatever_is_injected_beside_it() -> None:
    deployment = yaml.safe_load((BASE / "deployment.yaml").read_text())
    (ours,) = deployment["spec"]["template"]["spec"]["containers"]
    for containers in ([ours], [{"name": "proxy", "image": "proxy"}, ours], [{**ours, "name": "renamed"}]):
        assert own_image({"spec": {"containers": containers}}) == ours["image"]


@pytest.fixture
def process_settings() -> Iterator[None]:
    """Puts back what `operate` sets for its whole process."""
    depth, thresholds = sys.getrecursionlimit(), gc.get_threshold()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    sys.setrecursionlimit(depth)
    gc.set_threshold(*thresholds)
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("process_settings")
async def test_garbage_is_looked_for_seldom_and_what_has_grown_old_as_seldom_as_ever(tmp_path: Path) -> None:
    young, *old = gc.get_threshold()
    assert young < FEW_COLLECTIONS
    assert await operate(operator_options(kubeconfig=tmp_path / "missing")) == 1
    assert gc.get_threshold() == (FEW_COLLECTIONS, *old)


class LeaseServer:
    """Keeps Leases as the API server does; every other request stays open."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "/leases" not in request.path:
            await asyncio.Event().wait()
        if request.method == "GET":
            found = self.kept.get(request.path.rsplit("/", 1)[1])
            return web.json_response(found or {}, status=200 if found else 404)
        body: dict[str, Any] = await request.json()
        self.kept[body["metadata"]["name"]] = body
        return web.json_response(body)

    def holders(self) -> dict[str, str]:
        return {name: lease["spec"]["holderIdentity"] for name, lease in self.kept.items()}


class NotingOperator(Operator):
    """Notes that it works, and does nothing else."""

    def __init__(self, client: ApiClient, connection: Connection, name: str, components: frozenset[Component]) -> None:
        options = operator_options(components=components, submitter_image=None, pod_name=name, leader_election=True)
        super().__init__(options, connection, client)
        self.works = asyncio.Event()

    async def _lead(self) -> None:
        self.works.set()
        await asyncio.Event().wait()


@asynccontextmanager
async def serving(leases: LeaseServer) -> AsyncIterator[Connection]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", leases.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield Connection(f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()


@asynccontextmanager
async def running(*operators: Operator) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(operator.run()) for operator in operators]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_components_that_run_apart_do_not_wait_for_each_other() -> None:
    leases = LeaseServer()
    async with serving(leases) as connection, ApiClient(connection) as client:
        apart = [NotingOperator(client, connection, one.value, frozenset({one})) for one in BOTH]
        async with running(*apart):
            for operator in apart:
                await asyncio.wait_for(operator.works.wait(), 10)
            assert leases.holders() == {LEASES[one]: one.value for one in BOTH}


@pytest.mark.parametrize("component", sorted(BOTH))
async def test_a_component_works_in_one_process_at_a_time_whatever_else_that_runs(component: Component) -> None:
    leases = LeaseServer()
    async with serving(leases) as connection, ApiClient(connection) as client:
        first = NotingOperator(client, connection, "first", frozenset({component}))
        second = NotingOperator(client, connection, "second", BOTH)
        async with running(first):
            await asyncio.wait_for(first.works.wait(), 10)
            async with running(second):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(second.works.wait(), 0.5)
        assert leases.holders()[LEASES[component]] == ""


async def test_requests_without_an_answer_do_not_keep_a_lease_waiting() -> None:
    leases = LeaseServer()
    async with serving(leases) as connection, ApiClient(connection, concurrency=2) as client:
        stuck = [asyncio.create_task(client.get(PODS, "ns", "x")) for _ in range(4)]
        operator = NotingOperator(client, connection, "busy", BOTH)
        async with running(operator):
            await asyncio.wait_for(operator.works.wait(), 4)
        for task in stuck:
            task.cancel()


def test_the_role_allows_the_leases_that_are_used() -> None:
    role, _ = yaml.safe_load_all((BASE / "role.yaml").read_text())
    named = [
        rule["resourceNames"] for rule in role["rules"] if rule["resources"] == ["leases"] and "resourceNames" in rule
    ]
    assert named == [sorted(one.lease for one in Component if one.lease)] == [sorted(LEASES.values())]


async def test_what_needs_no_lease_does_not_wait_for_one() -> None:
    works = asyncio.Event()

    async def admit() -> None:
        works.set()
        await asyncio.Event().wait()

    async def compete() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(until_one_ends(compete, admit))
    await asyncio.wait_for(works.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_when_one_part_ends_the_others_are_stopped_and_its_error_is_the_error() -> None:
    stopped = asyncio.Event()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("this one")

    async def go_on() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with pytest.raises(ValueError, match="this one"):
        await until_one_ends(go_on, fail)
    assert stopped.is_set()


def test_admission_is_loaded_by_who_has_it() -> None:
    script = "import sys, muster.app; sys.exit('muster.admission.admission' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0
