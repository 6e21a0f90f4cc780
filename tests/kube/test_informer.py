"""The informer's promises under any order of events, writes of our own, cuts and forgotten versions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.kube.informer import Change, ChangeKind, Informer
from muster.kube.objects import PartialObject
from muster.kube.store import version_of
from tests.kube.fake_time import settle
from tests.kube.scripted import ScriptedServer


async def at_once(_: float) -> None:
    await asyncio.sleep(0)


@asynccontextmanager
async def running(informer: Informer[PartialObject]) -> AsyncIterator[None]:
    task = asyncio.create_task(informer.run())
    await informer.wait_synced(5)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def versions(objects: list[PartialObject]) -> dict[str, str]:
    return {obj.metadata.name: obj.metadata.resource_version for obj in objects}


class Follower:
    """Keeps its own copy by the changes that it hears, and notes every change that does not fit."""

    def __init__(self) -> None:
        self.copy: dict[str, PartialObject] = {}
        self.misfits: list[Change[PartialObject]] = []

    def __call__(self, change: Change[PartialObject]) -> None:
        key = change.object.key
        known = self.copy.get(key)
        if change.old != known or (known and change.new and not self._follows(known, change.new)):
            self.misfits.append(change)
        if change.kind is ChangeKind.DELETED:
            del self.copy[key]
        else:
            self.copy[key] = change.object

    def _follows(self, old: PartialObject, new: PartialObject) -> bool:
        return version_of(new) > version_of(old) and new.metadata.uid == old.metadata.uid


class OwnWrites:
    """What was recorded must be read from then on, as long as the object lives."""

    def __init__(self, server: ScriptedServer, informer: Informer[PartialObject]) -> None:
        self._server = server
        self._informer = informer
        self._recorded: dict[str, PartialObject] = {}

    def record(self, answer: PartialObject) -> None:
        self._informer.record(answer)
        self._recorded[answer.metadata.name] = answer

    def check(self) -> None:
        for name, recorded in self._recorded.items():
            present = self._server.objects.get(name)
            if present and present["metadata"]["uid"] == recorded.metadata.uid:
                found = self._informer.get("ns", name)
                assert found is not None
                assert version_of(found) >= version_of(recorded)


STEP = st.one_of(
    st.tuples(st.sampled_from(["write", "write and record", "delete"]), st.sampled_from("ab")),
    st.tuples(st.just("record late"), st.integers(0, 7)),
    st.tuples(st.just("tell"), st.integers(1, 3)),
    st.tuples(st.sampled_from(["cut", "forget"]), st.none()),
)
RACES: dict[str, list[tuple[str, Any]]] = {
    "a record after the deletion was told": [("write", "b"), ("delete", "b"), ("tell", 3), ("record late", 0)],
    "a record after a newer state was told": [("write", "b"), ("write", "b"), ("tell", 3), ("record late", 0)],
    "a record of a new object before its predecessor's deletion is told": [("delete", "a"), ("write and record", "a")],
    "a record of a new object whose predecessor's deletion is told next": [
        ("delete", "a"),
        ("write and record", "a"),
        ("tell", 2),
    ],
    "a record that is newer than the watch": [("write", "a"), ("write and record", "a"), ("tell", 2)],
    "a record before a new list": [("write and record", "b"), ("forget", None), ("write", "a"), ("tell", 3)],
    "a deletion that only a new list tells": [("write", "b"), ("delete", "a"), ("forget", None)],
}


async def play(server: ScriptedServer, informer: Informer[PartialObject], steps: list[tuple[str, Any]]) -> None:
    answers: list[PartialObject] = []
    own = OwnWrites(server, informer)
    for step, argument in steps:
        match step:
            case "write":
                answers.append(server.put(argument))
            case "write and record":
                own.record(server.put(argument))
            case "delete" if argument in server.objects:
                server.delete(argument)
            case "tell":
                server.tell(argument)
            case "record late" if answers:
                informer.record(answers[argument % len(answers)])
            case "cut":
                server.cut()
            case "forget":
                server.forget()
        if step in ("tell", "cut", "forget"):
            await settle()
        own.check()


async def check(steps: list[tuple[str, Any]]) -> None:
    server = ScriptedServer()
    server.put("a")
    informer, follower = server.informer(sleep=at_once), Follower()
    informer.subscribe(follower)
    async with running(informer):
        await play(server, informer, steps)
        server.tell()
        await settle()
        expected = {name: obj["metadata"]["resourceVersion"] for name, obj in server.objects.items()}
        assert versions(informer.list()) == expected
        assert versions(list(follower.copy.values())) == expected
        assert follower.misfits == []


@pytest.mark.parametrize("steps", RACES.values(), ids=RACES.keys())
async def test_the_known_races_end_like_the_server(steps: list[tuple[str, Any]]) -> None:
    await check(steps)


@given(steps=st.lists(STEP, min_size=10, max_size=40))
@settings(max_examples=150)
def test_whatever_happens_it_ends_like_the_server_and_never_goes_back(steps: list[tuple[str, Any]]) -> None:
    logging.getLogger("muster.kube.informer").setLevel(logging.CRITICAL)
    asyncio.run(check(steps))


async def test_a_record_made_after_a_list_was_taken_outlives_that_list() -> None:
    server = ScriptedServer()
    server.page_size = 1
    server.put("a")
    server.put("b")
    informer = server.informer()
    server.during_list = lambda: informer.record(server.put("c"))
    async with running(informer):
        assert versions(informer.list()).keys() == {"a", "b", "c"}


async def test_an_object_that_the_watch_does_not_tell_of_is_not_recorded() -> None:
    server = ScriptedServer()
    informer = server.informer(namespace="ns", label_selector="app=ray,tier==head")
    async with running(informer):
        for labels in ({}, {"app": "ray"}, {"app": "ray", "tier": "worker"}):
            informer.record(server.put("foreign", **labels))
        informer.record(server.put("ours", app="ray", tier="head", more="labels"))
        assert [obj.metadata.name for obj in informer.list()] == ["ours"]
        elsewhere = server.put("elsewhere", app="ray", tier="head")
        meta = msgspec.structs.replace(elsewhere.metadata, namespace="other")
        informer.record(msgspec.structs.replace(elsewhere, metadata=meta))
        assert [obj.metadata.name for obj in informer.list()] == ["ours"]


@pytest.mark.parametrize("selector", ["app", "!app", "app!=ray", "app in (ray)"])
def test_a_selector_that_can_not_be_judged_here_is_refused(selector: str) -> None:
    with pytest.raises(ValueError, match="key=value"):
        ScriptedServer().informer(label_selector=selector)


def put_malformed(server: ScriptedServer, name: str) -> None:
    with suppress(msgspec.ValidationError):
        server.put(name, label=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("seen", ["by the watch", "by a list"])
async def test_the_end_of_a_malformed_object_is_told_once_and_not_that_of_a_mended_one(seen: str) -> None:
    server = ScriptedServer()
    informer = server.informer(sleep=at_once)
    told: list[str] = []
    informer.on_malformed(lambda one: told.append(f"{one.name} is malformed"))
    informer.on_malformed_deleted(lambda one: told.append(f"{one.name} is gone"))
    put_malformed(server, "bad")
    put_malformed(server, "mended")
    async with running(informer):
        server.put("mended")
        server.tell()
        await settle()
        server.delete("bad")
        server.delete("mended")
        if seen == "by a list":
            server.forget()
        server.tell()
        await settle()
    assert told == ["bad is malformed", "mended is malformed", "bad is gone"]


async def test_a_late_subscriber_hears_of_everything_that_is_there_and_then_of_changes() -> None:
    server = ScriptedServer()
    server.put("a")
    informer = server.informer()
    async with running(informer):
        follower = Follower()
        informer.subscribe(follower)
        assert set(follower.copy) == {"ns/a"}
        server.put("b")
        server.tell()
        await settle()
        assert set(follower.copy) == {"ns/a", "ns/b"}


async def test_a_handler_that_raises_is_logged_with_the_key_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ScriptedServer()
    server.put("a")
    informer, follower = server.informer(), Follower()

    def broken(_: Change[PartialObject]) -> None:
        raise ValueError("broken handler")

    informer.subscribe(broken)
    informer.subscribe(follower)
    async with running(informer):
        server.put("b")
        server.tell()
        await settle()
    assert set(follower.copy) == {"ns/a", "ns/b"}
    assert "ns/a" in caplog.text
    assert "broken handler" in caplog.text


async def test_a_handler_that_writes_and_records_leaves_the_order_of_changes_intact() -> None:
    server = ScriptedServer()
    informer, follower = server.informer(), Follower()

    def label_once(change: Change[PartialObject]) -> None:
        if change.kind is ChangeKind.ADDED:
            informer.record(server.put(change.object.metadata.name, seen="yes"))

    informer.subscribe(label_once)
    informer.subscribe(follower)
    async with running(informer):
        server.put("a")
        server.tell()
        await settle()
    assert follower.copy["ns/a"].metadata.labels == {"seen": "yes"}


async def test_objects_are_found_by_index_and_by_namespace() -> None:
    server = ScriptedServer()
    server.put("a", app="ray")
    informer = server.informer()
    informer.add_index("app", lambda obj: [obj.metadata.labels[key] for key in ("app",) if key in obj.metadata.labels])
    async with running(informer):
        assert versions(informer.by_index("app", "ray")).keys() == {"a"}
        server.put("b", app="ray")
        server.put("a", app="other")
        server.tell()
        await settle()
        assert versions(informer.by_index("app", "ray")).keys() == {"b"}
        assert versions(informer.by_index("app", "other")).keys() == {"a"}
        assert len(informer.list("ns")) == 2
        assert informer.list("elsewhere") == []
        server.delete("b")
        server.tell()
        await settle()
        assert informer.by_index("app", "ray") == []
        with pytest.raises(KeyError):
            informer.by_index("no such index", "x")


async def test_waiting_for_a_list_that_does_not_come_ends_with_the_deadline() -> None:
    informer = ScriptedServer().informer()
    with pytest.raises(TimeoutError, match="configmaps"):
        await informer.wait_synced(0.01)
    assert not informer.has_synced


@pytest.mark.parametrize("ticks", range(5))
async def test_a_cancellation_that_meets_the_end_of_the_wait_is_not_lost(ticks: int) -> None:
    informer = ScriptedServer().informer()

    async def wait_then_work() -> None:
        await informer.wait_synced(5)
        await asyncio.Event().wait()

    task = asyncio.create_task(wait_then_work())
    await settle()
    informer._synced.set()
    for _ in range(ticks):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=1)
    task.cancel()
    assert done == {task}


async def test_watches_that_end_at_once_are_not_hammered() -> None:
    class Ending(ScriptedServer):
        async def watch(self, *_: Any, **__: Any) -> Any:
            for nothing in list[Any]():
                yield nothing

    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            await asyncio.Event().wait()
        await asyncio.sleep(0)

    server = Ending()
    async with running(server.informer(sleep=sleep)):
        await settle()
    assert pauses[:4] == [pytest.approx(0.1 * 2**n) for n in range(4)]
    assert max(pauses) == 5.0
    assert server.lists == 1


async def test_a_restored_older_database_is_believed_after_a_while() -> None:
    server = ScriptedServer()
    server.put("a")
    server.put("b")
    informer, follower = server.informer(sleep=at_once), Follower()
    informer.subscribe(follower)
    async with running(informer):
        server.version, server.objects, server.history, server.told = 3, {}, [], 0
        restored = server.put("c")
        server.forget()
        server.oldest = 10**6
        await settle()
        assert versions(informer.list()) == {"c": restored.metadata.resource_version}
        assert server.lists == 6
        assert set(follower.copy) == {"ns/c"}


async def test_of_what_is_listed_watched_and_recorded_that_is_kept_which_the_informer_is_told_to_keep() -> None:
    known: list[str] = []

    def compact(found: PartialObject, before: PartialObject | None) -> PartialObject:
        known.append(before.metadata.resource_version if before else "")
        return PartialObject(metadata=msgspec.structs.replace(found.metadata, annotations={"kept": "so"}))

    server = ScriptedServer()
    listed = server.put("a")
    informer = server.informer(sleep=at_once, compact=compact)
    async with running(informer):
        watched = server.put("a")
        server.tell()
        await settle()
        recorded = server.put("b")
        informer.record(recorded)
        assert known == ["", listed.metadata.resource_version, ""]
        assert versions(informer.list()) == {
            "a": watched.metadata.resource_version,
            "b": recorded.metadata.resource_version,
        }
        assert {obj.metadata.annotations["kept"] for obj in informer.list()} == {"so"}
