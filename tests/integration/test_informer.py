"""The informer against a real API server that loses, refuses, falls silent and forgets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.errors import NotFound
from muster.kube.informer import Informer, MalformedObject
from muster.kube.objects import PartialObject, PodGroup
from muster.kube.resource import CONFIGMAPS, CRDS, Resource
from tests.cluster.control_plane import ControlPlane
from tests.integration.fault_proxy import (
    Answer,
    CutWatch,
    Drop,
    FaultProxy,
    FreezeWatch,
    Hold,
    ProxiedRequest,
    WatchError,
    matching,
)
from tests.integration.informers import Heard, eventually, running

WATCH = matching(path="/configmaps$", watch=True)


@pytest.fixture
def connection(administrator: Connection) -> Connection:
    """Give an administrator's: the informer is tested on kinds that Muster may not touch."""
    return administrator


def is_list(request: ProxiedRequest) -> bool:
    return request.is_list


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def informer_of(client: ApiClient, namespace: str, **options: Any) -> Informer[PartialObject]:
    return Informer(client, CONFIGMAPS, PartialObject, namespace=namespace, jitter=lambda: 0.0, **options)


def names(informer: Informer[Any]) -> set[str]:
    return {obj.metadata.name for obj in informer.list()}


async def create(api: ApiClient, namespace: str, *objects: str) -> list[PartialObject]:
    return list(
        await asyncio.gather(
            *(api.create(CONFIGMAPS, namespace, config_map(name), decode=PartialObject) for name in objects)
        )
    )


async def test_it_lists_in_pages_and_follows_every_change(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    await create(api, namespace, "a", "b", "c", "d", "e")
    informer, heard = informer_of(proxied, namespace, chunk=2), Heard()
    informer.subscribe(heard)
    assert not informer.has_synced
    async with running(informer):
        assert len([request for request in proxy.requests if request.is_list]) == 3
        assert names(informer) == {"a", "b", "c", "d", "e"}
        await create(api, namespace, "f")
        await api.patch(CONFIGMAPS, namespace, "a", {"metadata": {"labels": {"x": "y"}}})
        await api.delete(CONFIGMAPS, namespace, "b")
        await eventually(lambda: ("DELETED", "b") in heard.changes)
        assert names(informer) == {"a", "c", "d", "e", "f"}
        changed = informer.get(namespace, "a")
        assert changed is not None
        assert changed.metadata.labels == {"x": "y"}
    assert {("ADDED", "f"), ("MODIFIED", "a")} <= set(heard.changes)


async def test_a_cut_watch_is_resumed_without_a_new_list_and_misses_nothing(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    informer, heard = informer_of(proxied, namespace), Heard()
    informer.subscribe(heard)
    async with running(informer):
        await proxy.arrival(WATCH)
        hold = Hold()
        proxy.inject(hold, when=WATCH)
        await eventually(lambda: proxy.cut_watches(WATCH))
        await hold.reached.wait()
        await create(api, namespace, "a", "b")
        await api.delete(CONFIGMAPS, namespace, "a")
        hold.release.set()
        await eventually(lambda: names(informer) == {"b"})
    assert set(heard.changes) == {("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")}
    assert len([request for request in proxy.requests if request.is_list]) == 1


async def test_a_watch_cut_in_the_middle_of_events_misses_none(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    proxy.inject(CutWatch(after=2), when=WATCH, times=3)
    informer, heard = informer_of(proxied, namespace), Heard()
    informer.subscribe(heard)
    expected = {f"p{number}" for number in range(9)}
    async with running(informer):
        await create(api, namespace, *sorted(expected))
        await eventually(lambda: names(informer) == expected)
    assert sorted(heard.changes) == sorted(("ADDED", name) for name in expected)


@pytest.mark.parametrize("gone", [WatchError(410), Answer(410, "Expired")], ids=["in the stream", "as the answer"])
async def test_an_expired_version_leads_to_a_new_list_that_finds_what_was_deleted(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str, gone: WatchError | Answer
) -> None:
    await create(api, namespace, "stays", "goes")
    informer, heard = informer_of(proxied, namespace), Heard()
    informer.subscribe(heard)
    async with running(informer):
        await proxy.arrival(WATCH)
        hold = Hold(then=gone)
        proxy.inject(hold, when=WATCH)
        await eventually(lambda: proxy.cut_watches(WATCH))
        await hold.reached.wait()
        await create(api, namespace, "comes")
        await api.delete(CONFIGMAPS, namespace, "goes")
        hold.release.set()
        await eventually(lambda: names(informer) == {"stays", "comes"})
    assert heard.changes[2:] in ([("ADDED", "comes"), ("DELETED", "goes")], [("DELETED", "goes"), ("ADDED", "comes")])


async def test_history_that_etcd_has_compacted_leads_to_a_new_list(
    control_plane: ControlPlane, proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    await create(api, namespace, "stays", "goes")
    informer, heard = informer_of(proxied, namespace), Heard()
    informer.subscribe(heard)
    async with running(informer):
        await proxy.arrival(WATCH)
        hold = Hold()
        proxy.inject(hold, when=WATCH)
        await eventually(lambda: proxy.cut_watches(WATCH))
        await hold.reached.wait()
        await api.delete(CONFIGMAPS, namespace, "goes")
        await create(api, namespace, "comes")
        await asyncio.to_thread(control_plane.compact_history)
        # Only a fresh API server has no memory of its own of what etcd has forgotten.
        await asyncio.to_thread(control_plane.stop_api_server)
        await asyncio.to_thread(control_plane.restart_api_server)
        hold.release.set()
        await eventually(lambda: names(informer) == {"stays", "comes"})
    assert len([request for request in proxy.requests if request.is_list]) == 2
    assert ("DELETED", "goes") in heard.changes


async def test_a_watch_that_falls_silent_is_noticed_and_replaced(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    proxy.inject(FreezeWatch(after=1), when=WATCH)
    informer = informer_of(proxied, namespace, read_timeout=0.5)
    async with running(informer):
        await create(api, namespace, "a")
        await eventually(lambda: names(informer) == {"a"})
        await create(api, namespace, "b")
        await proxy.arrival(WATCH, count=2)
        await eventually(lambda: names(informer) == {"a", "b"})
    assert len([request for request in proxy.requests if request.is_list]) == 1


async def test_a_server_that_refuses_is_asked_again_until_it_answers(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    await create(api, namespace, "a")
    for fault in (Answer(500), Answer(403), Drop(), Drop(), Answer(429, retry_after=0), Answer(503)):
        proxy.inject(fault, when=is_list)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    informer = informer_of(proxied, namespace, sleep=sleep)
    async with running(informer):
        assert names(informer) == {"a"}
    # The client itself repeats the broken read once and waits out the 429.
    assert pauses == [pytest.approx(0.1), pytest.approx(0.2), pytest.approx(0.4), pytest.approx(0.8)]


async def test_a_restarted_api_server_is_followed_on(
    control_plane: ControlPlane, api: ApiClient, namespace: str
) -> None:
    informer = informer_of(api, namespace)
    async with running(informer):
        await create(api, namespace, "a")
        await asyncio.to_thread(control_plane.stop_api_server)
        await asyncio.to_thread(control_plane.restart_api_server)
        await create(api, namespace, "b")
        await eventually(lambda: names(informer) == {"a", "b"}, deadline=40)


async def test_selectors_narrow_what_is_followed_and_a_lost_label_is_a_deletion(api: ApiClient, namespace: str) -> None:
    await api.create(CONFIGMAPS, namespace, config_map("mine", app="ray"))
    await api.create(CONFIGMAPS, namespace, config_map("other"))
    informer = informer_of(api, namespace, label_selector="app=ray")
    async with running(informer):
        assert names(informer) == {"mine"}
        await api.patch(CONFIGMAPS, namespace, "mine", {"metadata": {"labels": {"app": None}}})
        await api.patch(CONFIGMAPS, namespace, "other", {"metadata": {"labels": {"app": "ray"}}})
        await eventually(lambda: names(informer) == {"other"})


# --- objects of the wrong shape ---------------------------------------------------------------------------------------

LOOSE = Resource("test.muster.dev", "v1", "loosegroups", "LooseGroup")


@pytest.fixture
async def loose(api: ApiClient) -> Resource:
    """A kind like PodGroup whose CRD lets everything through."""
    anything_goes = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{LOOSE.plural}.{LOOSE.group}"},
        "spec": {
            "group": LOOSE.group,
            "scope": "Namespaced",
            "names": {"plural": LOOSE.plural, "kind": LOOSE.kind, "singular": "loosegroup"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything_goes}}],
        },
    }
    if not [one for one in await api.list(CRDS) if one["metadata"]["name"] == crd["metadata"]["name"]]:  # type: ignore[index]
        await api.create(CRDS, None, crd)
    await _served(api)
    return LOOSE


async def _served(api: ApiClient) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                await api.list(LOOSE)
            except NotFound:
                await asyncio.sleep(0.05)
            else:
                return


def group(name: str, min_member: Any) -> dict[str, Any]:
    return {
        "apiVersion": LOOSE.api_version,
        "kind": LOOSE.kind,
        "metadata": {"name": name},
        "spec": {"minMember": min_member},
    }


async def test_a_malformed_object_is_set_apart_with_its_path_while_the_others_go_on(
    api: ApiClient, namespace: str, loose: Resource
) -> None:
    await api.create(loose, namespace, group("bad", "three"))
    await api.create(loose, namespace, group("good", 3))
    informer = Informer(api, loose, PodGroup, namespace=namespace)
    reported: list[MalformedObject] = []
    heard = Heard()
    informer.on_malformed(reported.append)
    informer.subscribe(heard)
    async with running(informer):
        assert names(informer) == {"good"}
        await api.create(loose, namespace, group("later", 1))
        await eventually(lambda: names(informer) == {"good", "later"})

        await api.patch(loose, namespace, "good", {"spec": {"minMember": "many"}})
        await eventually(lambda: names(informer) == {"later"})
        await api.patch(loose, namespace, "bad", {"spec": {"minMember": 2}})
        await eventually(lambda: names(informer) == {"later", "bad"})
        await api.delete(loose, namespace, "good")
    assert [(one.name, one.path_message) for one in reported] == [
        ("bad", "spec.minMember: Expected int | null, got str"),
        ("good", "spec.minMember: Expected int | null, got str"),
    ]
    assert {one.namespace for one in reported} == {namespace}
    assert heard.changes == [("ADDED", "good"), ("ADDED", "later"), ("DELETED", "good"), ("ADDED", "bad")]


async def test_a_malformed_object_is_reported_once_for_each_version(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str, loose: Resource
) -> None:
    await api.create(loose, namespace, group("bad", "three"))
    informer = Informer(proxied, loose, PodGroup, namespace=namespace)
    reported: list[str] = []
    informer.on_malformed(lambda one: reported.append(one.resource_version))
    watch = matching(path="/loosegroups$", watch=True)
    async with running(informer):
        await proxy.arrival(watch)
        proxy.inject(WatchError(410), when=watch)
        await eventually(lambda: proxy.cut_watches(watch))
        await proxy.arrival(is_list, count=2)
        await proxy.arrival(watch, count=3)
        assert len(reported) == 1
        await api.patch(loose, namespace, "bad", {"spec": {"minMember": "four"}})
        await eventually(lambda: len(reported) == 2)


# --- reading our own writes -------------------------------------------------------------------------------------------


async def test_a_recorded_write_is_read_at_once_and_is_no_news_when_the_watch_brings_it(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    proxy.inject(FreezeWatch(), when=WATCH)
    informer, heard = informer_of(proxied, namespace, read_timeout=1.0), Heard()
    informer.subscribe(heard)
    async with running(informer):
        await proxy.arrival(WATCH)
        informer.record(await api.create(CONFIGMAPS, namespace, config_map("a"), decode=PartialObject))
        assert names(informer) == {"a"}
        await create(api, namespace, "b")
        await eventually(lambda: names(informer) == {"a", "b"})
    assert heard.changes == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_record_that_comes_after_the_deletion_does_not_bring_the_object_back(
    api: ApiClient, namespace: str
) -> None:
    informer, heard = informer_of(api, namespace), Heard()
    informer.subscribe(heard)
    async with running(informer):
        created = await api.create(CONFIGMAPS, namespace, config_map("a"), decode=PartialObject)
        await api.delete(CONFIGMAPS, namespace, "a")
        await eventually(lambda: ("DELETED", "a") in heard.changes)
        informer.record(created)
        assert names(informer) == set()


async def test_a_record_that_is_older_than_what_is_known_changes_nothing(api: ApiClient, namespace: str) -> None:
    informer = informer_of(api, namespace)
    async with running(informer):
        created = await api.create(CONFIGMAPS, namespace, config_map("a"), decode=PartialObject)
        await api.patch(CONFIGMAPS, namespace, "a", {"metadata": {"labels": {"x": "y"}}})
        await eventually(lambda: [one.metadata.labels for one in informer.list()] == [{"x": "y"}])
        informer.record(created)
        assert [one.metadata.labels for one in informer.list()] == [{"x": "y"}]


async def test_a_record_outlives_a_list_that_was_taken_before_it(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    informer, heard = informer_of(proxied, namespace), Heard()
    informer.subscribe(heard)
    before = await proxy.snapshot(f"/api/v1/namespaces/{namespace}/configmaps")
    proxy.inject(before, when=is_list)
    informer.record(await api.create(CONFIGMAPS, namespace, config_map("a"), decode=PartialObject))
    async with running(informer):
        assert names(informer) == {"a"}
        await create(api, namespace, "b")
        await eventually(lambda: names(informer) == {"a", "b"})
    assert heard.changes == [("ADDED", "a"), ("ADDED", "b")]


async def test_a_stale_list_does_not_take_us_back_in_time(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    await create(api, namespace, "old")
    stale = await proxy.snapshot(f"/api/v1/namespaces/{namespace}/configmaps")
    informer, heard = informer_of(proxied, namespace), Heard()
    informer.subscribe(heard)
    async with running(informer):
        await proxy.arrival(WATCH)
        await create(api, namespace, "new")
        await api.delete(CONFIGMAPS, namespace, "old")
        await eventually(lambda: names(informer) == {"new"})
        proxy.inject(stale, when=is_list)
        proxy.inject(WatchError(410), when=WATCH)
        await eventually(lambda: proxy.cut_watches(WATCH))
        await proxy.arrival(is_list, count=3)
        await proxy.arrival(WATCH, count=3)
        assert names(informer) == {"new"}
    assert heard.changes == [("ADDED", "old"), ("ADDED", "new"), ("DELETED", "old")]


async def test_an_object_recreated_under_its_name_while_nobody_watched_comes_as_two_changes(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    await create(api, namespace, "a")
    informer, heard = informer_of(proxied, namespace), Heard()
    informer.subscribe(heard)
    async with running(informer):
        await proxy.arrival(WATCH)
        hold = Hold(then=WatchError(410))
        proxy.inject(hold, when=WATCH)
        await eventually(lambda: proxy.cut_watches(WATCH))
        await hold.reached.wait()
        await api.delete(CONFIGMAPS, namespace, "a")
        (again,) = await create(api, namespace, "a")
        hold.release.set()
        await eventually(lambda: len(heard.changes) == 3)
        found = informer.get(namespace, "a")
        assert found is not None
        assert found.metadata.uid == again.metadata.uid
    assert heard.changes == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]
