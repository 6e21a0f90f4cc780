"""What an engine does around its execution; the execution itself is tested in tests/integration."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import msgspec
import pytest

from muster.engine.configuration_source import FixedConfiguration
from muster.engine.engine import Engine, EngineInformers
from muster.kube.events import ObjectReference
from muster.kube.malformed import MalformedObject
from muster.kube.objects import ApiObject, PodGroup
from muster.kube.resource import NODES, PODGROUPS, PODS, PRIORITYCLASSES, QUEUES, Resource
from muster.kube.store import Store
from muster.scheduler.conf import DEFAULT, SchedulerConfiguration, load_configuration
from muster.scheduler.plugins.extender.allowance import LONGEST_PAUSE, SECONDS_IN_ALL
from tests.engine.manual_clock import ManualClock, settle
from tests.extender_server import serving

LONGEST_SILENCE = 2 * SECONDS_IN_ALL + LONGEST_PAUSE
"""Seconds after which an extender is asked again, however slow it was."""


class StubInformer(Store[ApiObject]):
    """A store that claims to be an informer; `synced` is for the test to set."""

    def __init__(self, resource: Resource) -> None:
        super().__init__(resource.kind)
        self.resource = resource
        self.synced = asyncio.Event()
        self.callbacks: list[Callable[[MalformedObject], None]] = []
        self.deleted_callbacks: list[Callable[[MalformedObject], None]] = []

    async def wait_synced(self, deadline_seconds: float) -> None:
        try:
            await asyncio.wait_for(self.synced.wait(), deadline_seconds)
        except TimeoutError:
            raise TimeoutError(f"no list of {self.resource.plural}") from None

    def on_malformed(self, callback: Callable[[MalformedObject], None]) -> None:
        self.callbacks.append(callback)

    def on_malformed_deleted(self, callback: Callable[[MalformedObject], None]) -> None:
        self.deleted_callbacks.append(callback)

    def get(self, *key: str | None) -> ApiObject | None:
        return super().get("/".join(part for part in key if part))


class StubConfiguration(FixedConfiguration):
    """A configuration that changes, or is refused, when a test says so."""

    async def watch(self, changed: Callable[[], None], refused: Callable[[str], None]) -> None:
        self.changed, self.refused = changed, refused


class Setting:
    """An engine among stubs, and the events that it had recorded."""

    def __init__(self, configuration: SchedulerConfiguration = DEFAULT) -> None:
        self.informers = [StubInformer(each) for each in (PODS, NODES, PODGROUPS, QUEUES, PRIORITYCLASSES)]
        self.pod_groups = self.informers[2]
        self.events: list[tuple[str, str]] = []
        informers = EngineInformers(*cast(list[Any], self.informers))
        self.clock = ManualClock()
        stub = cast(Any, self)
        self.configuration = StubConfiguration(configuration)
        self.engine = Engine(
            stub,
            informers,
            stub,
            clock=self.clock,
            configuration_source=self.configuration,
            itself=ObjectReference("v1", "Pod", "muster", "muster-0", "u"),
            sync_deadline=0.05,
        )

    def event(self, about: ObjectReference, kind: str, reason: str, message: str, action: str) -> None:
        self.events.append((about.name, message))

    def sync(self) -> None:
        for informer in self.informers:
            informer.synced.set()

    def malformed(self, name: str, *, deleted: bool = False) -> None:
        found = MalformedObject(PODGROUPS, "ns", name, "spec.minMember: Expected int, got str", "u", "1")
        for callback in self.pod_groups.deleted_callbacks if deleted else self.pod_groups.callbacks:
            callback(found)

    async def run_a_while(self) -> None:
        task = asyncio.create_task(self.engine.run())
        await settle()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_scheduling_waits_for_every_informer_and_names_the_one_that_fails() -> None:
    setting = Setting()
    for informer in setting.informers:
        informer.synced.set()
    setting.pod_groups.synced.clear()
    with pytest.raises(TimeoutError, match="podgroups"):
        await setting.engine.run()
    assert setting.engine.execution is None


async def test_what_was_malformed_before_the_engine_led_is_named_when_it_does() -> None:
    setting = Setting()
    setting.malformed("bad")
    setting.malformed("mended")
    setting.malformed("gone")
    setting.malformed("gone", deleted=True)
    meta = {"name": "mended", "namespace": "ns", "resourceVersion": "2"}
    setting.pod_groups.put(msgspec.convert({"metadata": meta}, type=PodGroup))
    assert setting.events == []
    setting.sync()
    await setting.run_a_while()
    assert setting.events == [("bad", "spec.minMember: Expected int, got str")]


async def test_what_becomes_malformed_while_the_engine_leads_is_named_at_once_and_later_passed_over() -> None:
    setting = Setting()
    setting.sync()
    task = asyncio.create_task(setting.engine.run())
    await settle()
    setting.malformed("bad")
    assert [name for name, _ in setting.events] == ["bad"]
    assert setting.engine.execution is not None
    assert "ns/bad" in setting.engine.execution.cache.jobs
    setting.malformed("bad", deleted=True)
    assert "ns/bad" not in setting.engine.execution.cache.jobs
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    setting.malformed("worse")
    assert [name for name, _ in setting.events] == ["bad"]


async def test_an_engine_may_lead_again_with_a_model_of_its_own() -> None:
    setting = Setting()
    setting.sync()
    models = []
    for _ in range(2):
        task = asyncio.create_task(setting.engine.run())
        await settle()
        assert setting.engine.execution is not None
        models.append(setting.engine.execution.cache)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert setting.engine.execution is None
    assert models[0] is not models[1]


async def test_a_model_in_doubt_ends_the_engine_with_the_model_s_own_error() -> None:
    setting = Setting()
    setting.sync()
    task = asyncio.create_task(setting.engine.run())
    await settle()
    assert setting.engine.execution is not None

    def fail(spec: object) -> None:
        raise ArithmeticError("the accounts don't add up")

    setting.engine.execution.mirror._pod_groups.put = fail
    setting.pod_groups.put(
        msgspec.convert({"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "1"}}, type=PodGroup)
    )
    with pytest.raises(BaseExceptionGroup) as caught:
        await task
    assert caught.group_contains(ArithmeticError, match="don't add up")


async def test_a_new_configuration_starts_a_cycle_and_a_refused_one_is_told() -> None:
    setting = Setting()
    setting.sync()
    task = asyncio.create_task(setting.engine.run())
    await setting.clock.advance(1)
    assert setting.engine.execution is not None
    assert setting.engine.execution.loop.cycles == 1
    setting.configuration.changed()
    await setting.clock.advance(1)
    assert setting.engine.execution.loop.cycles == 2
    setting.configuration.refused("actions: unknown action dance")
    assert setting.events == [("muster-0", "actions: unknown action dance")]
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_an_extender_is_asked_in_each_cycle_and_left_alone_when_the_engine_stops() -> None:
    with serving() as server:
        server.replies["open"] = lambda _: {}
        arguments = {
            "extender.urlPrefix": server.url,
            "extender.onSessionOpenVerb": "open",
            "extender.httpTimeout": "1m",
        }
        plugins = [{"name": "gang"}, {"name": "extender", "arguments": arguments}]
        setting = Setting(load_configuration({"actions": "allocate", "tiers": [{"plugins": plugins}]}))
        setting.sync()
        task = asyncio.create_task(setting.engine.run())
        # An answer that is slow in coming has the extender left alone for a while, on the engine's clock.
        await setting.clock.advance(LONGEST_SILENCE)
        first = len(server.verbs())
        setting.configuration.changed()
        await setting.clock.advance(LONGEST_SILENCE)
        assert 0 < first < len(server.verbs())
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert [each for each in threading.enumerate() if each.name == "extender"] == []
