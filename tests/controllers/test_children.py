"""What controllers make, as they see it between their own write and the watch's word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import pytest

from muster.api.raycluster import RayCluster
from muster.controllers.children import Children, NotOurs
from muster.controllers.context import MADE_BY_US
from muster.controllers.runner import LOOKING_AT
from muster.controllers.taken_names import LONGEST_PAUSE
from muster.kube.client import WatchEvent
from muster.kube.errors import AlreadyExists, Conflict, NotFound
from muster.kube.informer import Informer
from muster.kube.malformed import MalformedObject, UnreadableObject, decode_object
from muster.kube.objects import ObjectMeta, OwnerReference, Pod, PodSpec
from muster.kube.resource import PODS
from tests.controllers.fake_clock import FakeClock
from tests.integration.ray_manifests import cluster_spec


class Server:
    """An API server that has at most one pod and refuses to delete with the error given."""

    def __init__(self, refusal: Exception, present: Pod | None) -> None:
        self.refusal, self.present = refusal, present

    async def delete(self, *_: Any, **__: Any) -> None:
        raise self.refusal

    async def get(self, *_: Any, **__: Any) -> Pod:
        if self.present is None:
            raise NotFound(404, "NotFound", "no such pod")
        return self.present


def pod(uid: str = "1", version: str = "7") -> Pod:
    return Pod(metadata=ObjectMeta(name="head", namespace="default", uid=uid, resource_version=version))


def children(server: Server) -> Children[Pod]:
    informer: Informer[Pod] = Informer(server, PODS, Pod)  # type: ignore[arg-type]
    informer.record(pod())
    return Children(server, PODS, Pod, informer)  # type: ignore[arg-type]


class Crowded(Server):
    """An API server that has the wanted name already."""

    def __init__(self, present: Pod) -> None:
        super().__init__(Exception(), present)
        self.tries = 0

    async def create(self, *_: Any, **__: Any) -> Pod:
        self.tries += 1
        if self.present is not None:
            raise AlreadyExists(409, "AlreadyExists", 'pods "head" already exists')
        owner = OwnerReference("ray.io/v1", "RayCluster", "demo", "ours", controller=True)
        return Pod(metadata=ObjectMeta(name="head", namespace="default", uid="2", owner_references=[owner]))


def wanted() -> tuple[dict[str, Any], RayCluster]:
    """A pod that a cluster wants, and the cluster."""
    metadata = {"name": "demo", "namespace": "default", "uid": "ours"}
    cluster = RayCluster.parse({"metadata": metadata, "spec": cluster_spec()})
    return {"metadata": {"name": "head", "namespace": "default"}}, cluster


async def test_a_name_that_a_stranger_has_where_nobody_watches_it_is_not_tried_at_each_look() -> None:
    clock, server = FakeClock(), Crowded(pod())
    informer: Informer[Pod] = Informer(server, PODS, Pod, label_selector=MADE_BY_US)  # type: ignore[arg-type]
    pods = Children(server, PODS, Pod, informer, clock)  # type: ignore[arg-type]
    for _ in range(60):
        with pytest.raises(NotOurs, match="delete it or give it another name, or give the RayCluster another name"):
            await pods.ensure(*wanted())
        await clock.advance(1.0)
    assert server.tries == 4, "at 0, 5, 15 and 35 s"
    server.present = None
    await clock.advance(LONGEST_PAUSE)
    assert (await pods.ensure(*wanted()))[1]


async def test_a_name_that_the_watch_tells_of_is_tried_as_soon_as_it_is_free() -> None:
    server = Crowded(pod())
    informer: Informer[Pod] = Informer(server, PODS, Pod)  # type: ignore[arg-type]
    pods = Children(server, PODS, Pod, informer, FakeClock())  # type: ignore[arg-type]
    for _ in range(3):
        with pytest.raises(NotOurs):
            await pods.ensure(*wanted())
    assert server.tries == 1
    server.present = None
    pods._hide(pod().metadata)
    assert (await pods.ensure(*wanted()))[1]


GONE = NotFound(404, "NotFound", "no such pod")
CONFLICT = Conflict(409, "Conflict", "a webhook, or another precondition than the UID")


@pytest.mark.parametrize(
    ("refusal", "present", "seen"),
    [
        pytest.param(GONE, None, None, id="gone before"),
        pytest.param(CONFLICT, None, None, id="gone since"),
        pytest.param(CONFLICT, pod(uid="2", version="9"), "2", id="replaced by another"),
    ],
)
async def test_what_is_gone_or_replaced_is_not_seen_any_more(
    refusal: Exception, present: Pod | None, seen: str | None
) -> None:
    pods = children(Server(refusal, present))
    assert await pods.delete(pod()) is False
    found = pods.get("default", "head")
    assert (found and found.metadata.uid) == seen


async def test_a_delete_that_is_refused_while_the_object_stays_is_no_delete() -> None:
    pods = children(Server(CONFLICT, pod(version="8")))
    with pytest.raises(Conflict):
        await pods.delete(pod())
    found = pods.get("default", "head")
    assert found is not None
    assert found.metadata.resource_version == "8"


def owned(namespace: str, name: str, owner: str) -> Pod:
    reference = OwnerReference(api_version="ray.io/v1", kind="RayCluster", name="demo", uid=owner, controller=True)
    metadata = ObjectMeta(
        name=name, namespace=namespace, uid=f"{namespace}-{name}", resource_version="8", owner_references=[reference]
    )
    return Pod(metadata=metadata)


def test_a_reference_from_another_namespace_makes_no_child() -> None:
    pods = children(Server(GONE, None))
    for child in (owned("default", "head", "7"), owned("elsewhere", "intruder", "7"), owned("default", "other", "8")):
        pods.informer.record(child)
    assert [pod.key for pod in pods.owned_by("default", "7")] == ["default/head"]
    assert [pod.key for pod in pods.owned_by("elsewhere", "7")] == ["elsewhere/intruder"]


OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "ours", "controller": True}


def spoilt(version: str = "8") -> msgspec.Raw:
    """A pod of the cluster's whose spec can't be read."""
    metadata = {
        "name": "head",
        "namespace": "default",
        "uid": "s",
        "resourceVersion": version,
        "ownerReferences": [OWNER],
        "labels": {"app": "ray"},
    }
    return msgspec.Raw(msgspec.json.encode({"metadata": metadata, "spec": {"nodeName": 5}}))


class Unreadable(Crowded):
    """An API server whose answers can't be read."""

    def __init__(self) -> None:
        super().__init__(pod())

    async def get(self, *_: Any, **__: Any) -> Pod:
        found = decode_object(spoilt(), msgspec.json.Decoder(Pod), PODS)
        assert isinstance(found, MalformedObject)
        raise UnreadableObject(found)

    patch = get

    async def delete(self, *_: Any, **__: Any) -> None:
        await self.get()


def unwatched() -> Children[Pod]:
    server = Unreadable()
    return Children(server, PODS, Pod, Informer(server, PODS, Pod), FakeClock())  # type: ignore[arg-type]


def watched() -> Children[Pod]:
    pods = unwatched()
    pods.informer._apply([WatchEvent("ADDED", spoilt())])
    return pods


async def test_of_a_child_that_can_not_be_read_it_is_known_whose_it_is() -> None:
    for pods in (unwatched(), watched()):
        found, created = await pods.ensure(*wanted())
        assert (found.metadata.uid, found.metadata.labels, found.spec, created) == (
            "s",
            {"app": "ray"},
            PodSpec(),
            False,
        )
    read = await unwatched().read("default", "head")
    assert read == found
    assert (await pods.patch(found, {})) == (await pods.replace_spec(found, {}, {})) == found
    assert pods.get("default", "head") == found
    assert pods.owned_by("default", "ours") == [found]
    assert (pods.owned_by("default", "others"), pods.owned_by("elsewhere", "ours")) == ([], [])


async def test_a_child_that_can_not_be_read_is_told_until_it_can_or_is_gone() -> None:
    for end in (WatchEvent("MODIFIED", msgspec.Raw(msgspec.json.encode(pod(uid="s", version="9")))), None):
        pods = watched()
        (told,) = pods.unreadable("default", "ours")
        assert str(told).startswith("Pod default/head can't be read: spec.nodeName: Expected str | null, got int; ")
        assert (pods.unreadable("default", "others"), pods.unreadable("elsewhere", "ours")) == ([], [])
        pods.informer._apply([end or WatchEvent("DELETED", spoilt("9"))])
        assert pods.unreadable("default", "ours") == []
        assert (pods.get("default", "head") is None) == (end is None)


async def test_a_child_that_can_not_be_read_can_be_deleted() -> None:
    pods = watched()
    found = pods.get("default", "head")
    assert found is not None
    assert await pods.delete(found)
    gone = children(Server(GONE, None))
    gone.informer._apply([WatchEvent("MODIFIED", spoilt())])
    assert await gone.delete(found) is False
    assert gone.get("default", "head") is None


async def test_of_what_has_no_metadata_that_can_be_read_nothing_is_known() -> None:
    pods = unwatched()
    raw = msgspec.json.encode({"metadata": {"name": "head", "namespace": "default", "labels": 5}})
    pods.informer._apply([WatchEvent("ADDED", msgspec.Raw(raw))])
    assert pods.get("default", "head") is None


@pytest.fixture
def told() -> Iterator[list[tuple[str, str] | None]]:
    """A list for whose each change of the pods is, in a look at a cluster."""
    token = LOOKING_AT.set(("RayCluster", "default/demo"))
    yield []
    LOOKING_AT.reset(token)


class Answering(Server):
    """One that carries out what it is asked to, on the object as it is."""

    async def create(self, *_: Any, **__: Any) -> Pod:
        return pod(uid="2", version="9")

    async def patch(self, *_: Any, **__: Any) -> Pod:
        return pod(version="9")

    async def delete(self, *_: Any, **__: Any) -> Pod:  # type: ignore[override]
        return pod(version="9")


async def test_only_what_a_look_creates_or_deletes_is_told_of_as_its_own(told: list[tuple[str, str] | None]) -> None:
    """What a patch or a read comes back with may hold what others did: nobody tells of that again."""
    own = LOOKING_AT.get()
    acts: list[tuple[Callable[[Children[Pod]], Awaitable[object]], object]] = [
        (lambda pods: pods.create({"metadata": {"name": "head", "namespace": "default"}}), own),
        (lambda pods: pods.delete(pod()), own),
        (lambda pods: pods.patch(pod(), {}), None),
        (lambda pods: pods.replace_spec(pod(), {}, {}), None),
        (lambda pods: pods.read("default", "head"), None),
    ]
    for act, by in acts:
        pods = children(Answering(GONE, pod(version="9")))
        told.clear()
        pods.informer.subscribe(lambda change: told.append(LOOKING_AT.get()))
        told.clear()
        await act(pods)
        assert told[-1] == by
        assert LOOKING_AT.get() == own


async def test_the_change_that_a_conditional_delete_met_is_news(told: list[tuple[str, str] | None]) -> None:
    pods = children(Server(CONFLICT, pod(version="8")))
    pods.informer.subscribe(lambda change: told.append(LOOKING_AT.get()))
    told.clear()
    with pytest.raises(Conflict):
        await pods.delete(pod(), unchanged=True)
    assert told == [None]
