"""The client against a real API server: verbs, preconditions, and what happens when answers get lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from muster.kube.client import ApiClient, PatchKind
from muster.kube.config import Connection, load_connection
from muster.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
    ServerError,
    TooManyRequests,
    Undecodable,
    Unreachable,
)
from muster.kube.objects import Pod
from muster.kube.resource import CONFIGMAPS, NODES, PODS, RAYJOBS, Resource
from tests.cluster.control_plane import ControlPlane
from tests.integration.fault_proxy import (
    Answer,
    Drop,
    FaultProxy,
    KillHere,
    LoseAnswer,
    Phase,
    SpoilAnswer,
    StallAnswer,
    Write,
    matching,
)


@pytest.fixture
def connection(administrator: Connection) -> Connection:
    """Give an administrator's: the client is tested on kinds that Muster may not touch."""
    return administrator


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulerName": "muster", "containers": containers, "automountServiceAccountToken": False, **spec},
    }


async def test_an_object_is_created_read_changed_and_deleted(api: ApiClient, namespace: str) -> None:
    created = await api.create(CONFIGMAPS, namespace, config_map("a", x="1"))
    assert (await api.get(CONFIGMAPS, namespace, "a"))["data"] == {"x": "1"}

    merged = await api.patch(CONFIGMAPS, namespace, "a", {"data": {"y": "2"}})
    assert merged["data"] == {"x": "1", "y": "2"}

    replaced = await api.replace(CONFIGMAPS, namespace, "a", {**merged, "data": {"z": "3"}})
    assert replaced["data"] == {"z": "3"}

    await api.delete(CONFIGMAPS, namespace, "a", uid=created["metadata"]["uid"])
    with pytest.raises(NotFound) as gone:
        await api.get(CONFIGMAPS, namespace, "a")
    assert gone.value.details["name"] == "a"


async def test_answers_are_decoded_into_the_type_asked_for(api: ApiClient, namespace: str) -> None:
    created = await api.create(PODS, namespace, pod("p", schedulingGates=[{"name": "muster.dev/gang"}]), decode=Pod)
    assert created.key == f"{namespace}/p"
    assert created.spec.containers[0].resources.requests == {"cpu": "100m"}
    assert [gate.name for gate in created.spec.scheduling_gates] == ["muster.dev/gang"]
    assert created.status.phase == "Pending"


async def test_an_answer_of_another_shape_names_the_path(api: ApiClient, namespace: str) -> None:
    class Wrong(msgspec.Struct):
        data: dict[str, int]

    await api.create(CONFIGMAPS, namespace, config_map("a", x="1"))
    with pytest.raises(Undecodable, match="data"):
        await api.get(CONFIGMAPS, namespace, "a", decode=Wrong)


async def test_a_list_comes_in_pages_and_is_complete(api: ApiClient, namespace: str) -> None:
    names = {f"c{number}" for number in range(7)}
    await asyncio.gather(*(api.create(CONFIGMAPS, namespace, config_map(name)) for name in names))
    pages = [page async for page in api.pages(CONFIGMAPS, namespace, chunk=3)]
    assert [len(page.items or []) for page in pages] == [3, 3, 1]
    listed = await api.list(CONFIGMAPS, namespace)
    assert {item["metadata"]["name"] for item in listed} == names


async def test_selectors_narrow_a_list(api: ApiClient, namespace: str) -> None:
    labelled = config_map("a")
    labelled["metadata"]["labels"] = {"app": "ray"}
    await api.create(CONFIGMAPS, namespace, labelled)
    await api.create(CONFIGMAPS, namespace, config_map("b"))
    by_label = await api.list(CONFIGMAPS, namespace, label_selector="app=ray")
    by_field = await api.list(CONFIGMAPS, namespace, field_selector="metadata.name=b")
    assert [item["metadata"]["name"] for item in by_label + by_field] == ["a", "b"]


async def test_preconditions_refuse_what_has_changed(api: ApiClient, namespace: str) -> None:
    created = await api.create(CONFIGMAPS, namespace, config_map("a"))
    await api.patch(CONFIGMAPS, namespace, "a", {"data": {"x": "1"}})
    with pytest.raises(AlreadyExists):
        await api.create(CONFIGMAPS, namespace, config_map("a"))
    with pytest.raises(Conflict):
        await api.replace(CONFIGMAPS, namespace, "a", created)
    with pytest.raises(Conflict):
        await api.patch(CONFIGMAPS, namespace, "a", {"metadata": {"uid": "another"}, "data": {"x": "2"}})
    test = {"op": "test", "path": "/metadata/uid", "value": "another"}
    with pytest.raises(Conflict):
        await api.patch(CONFIGMAPS, namespace, "a", [test], kind=PatchKind.JSON)
    with pytest.raises(Conflict):
        await api.delete(CONFIGMAPS, namespace, "a", uid="another")
    with pytest.raises(Conflict):
        await api.delete(CONFIGMAPS, namespace, "a", resource_version=created["metadata"]["resourceVersion"])


async def test_an_invalid_body_is_refused_with_the_field(api: ApiClient, namespace: str) -> None:
    with pytest.raises(Invalid) as refused:
        await api.create(PODS, namespace, pod("p", containers=[]))
    assert refused.value.details["causes"][0]["field"] == "spec.containers"


async def test_a_delete_says_what_is_left(api: ApiClient, namespace: str) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["muster.dev/test"]
    await api.create(CONFIGMAPS, namespace, held)
    await api.create(CONFIGMAPS, namespace, config_map("free"))
    left = await api.delete(CONFIGMAPS, namespace, "held", propagation="Background")
    assert left is not None
    assert left["metadata"]["deletionTimestamp"]
    assert await api.delete(CONFIGMAPS, namespace, "free") is None
    await api.patch(
        CONFIGMAPS,
        namespace,
        "held",
        [{"op": "remove", "path": "/metadata/finalizers"}],
        kind=PatchKind.JSON,
    )


async def test_a_patch_can_be_strategic_or_applied(api: ApiClient, namespace: str) -> None:
    await api.create(PODS, namespace, pod("p"))
    image = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    merged = await api.patch(PODS, namespace, "p", image, kind=PatchKind.STRATEGIC, decode=Pod)
    assert merged.spec.containers[0].image == "other"
    assert merged.spec.containers[0].resources.requests == {"cpu": "100m"}
    applied = await api.patch(
        CONFIGMAPS, namespace, "new", config_map("new", x="1"), kind=PatchKind.APPLY, field_manager="muster"
    )
    assert applied["metadata"]["managedFields"][0]["manager"] == "muster"


async def test_a_status_is_written_through_its_subresource(api: ApiClient, namespace: str) -> None:
    await api.create(PODS, namespace, pod("p"))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    patched = await api.patch(
        PODS,
        namespace,
        "p",
        {"status": {"conditions": [condition]}},
        kind=PatchKind.STRATEGIC,
        subresource="status",
        decode=Pod,
    )
    assert [(one.type, one.reason) for one in patched.status.conditions] == [("PodScheduled", "Unschedulable")]


async def test_a_pod_is_bound_once_and_only_under_its_uid(api: ApiClient, namespace: str) -> None:
    node = f"node-{namespace}"
    await api.create(NODES, None, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    created = await api.create(PODS, namespace, pod("p"), decode=Pod)
    with pytest.raises(Conflict):
        await api.bind(namespace, "p", uid="another", node=node)
    await api.bind(namespace, "p", uid=created.metadata.uid, node=node)
    with pytest.raises(Conflict):
        await api.bind(namespace, "p", uid=created.metadata.uid, node=node)
    with pytest.raises(NotFound):
        await api.bind(namespace, "no-such-pod", uid="any", node=node)
    assert (await api.get(PODS, namespace, "p", decode=Pod)).spec.node_name == node


@pytest.mark.parametrize(
    "lacking",
    [
        Resource("muster.dev", "v1", "unicorns", "Unicorn"),
        Resource("ray.io", "v9", "rayjobs", "RayJob"),
        Resource("ray.io", "v1", "unicorns", "Unicorn"),
    ],
    ids=["group", "version", "kind"],
)
async def test_a_kind_that_the_server_lacks_is_not_served(api: ApiClient, namespace: str, lacking: Resource) -> None:
    body = {"apiVersion": lacking.api_version, "kind": lacking.kind, "metadata": {"name": "x"}}
    for request in (
        api.list(lacking),
        api.get(lacking, namespace, "x"),
        api.create(lacking, namespace, body),
        api.patch(lacking, namespace, "x", {}),
        api.delete(lacking, namespace, "x"),
    ):
        with pytest.raises(NotServed):
            await request


async def test_an_object_or_namespace_that_is_gone_is_of_a_kind_that_is_served(api: ApiClient, namespace: str) -> None:
    for request in (
        api.patch(RAYJOBS, namespace, "x", {}),
        api.patch(RAYJOBS, namespace, "x", {}, subresource="status"),
        api.delete(PODS, namespace, "x"),
        api.create(CONFIGMAPS, "no-such-namespace", config_map("x")),
    ):
        with pytest.raises(NotFound) as gone:
            await request
        assert not isinstance(gone.value, NotServed)


async def test_a_user_without_rights_is_forbidden(control_plane: ControlPlane, namespace: str) -> None:
    async with ApiClient(load_connection(control_plane.kubeconfig_for("nobody"))) as client:
        with pytest.raises(Forbidden, match="nobody"):
            await client.list(PODS, namespace)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(409, "Conflict"), Conflict),
        (Answer(404, "NotFound"), NotFound),
        (Answer(429, "TooManyRequests", retry_after=1), TooManyRequests),
        (Answer(500, "InternalError"), ServerError),
        (Answer(503, "ServiceUnavailable"), ServerError),
        (Drop(), Unreachable),
    ],
)
async def test_a_refused_write_is_sent_once_and_raised(
    proxied: ApiClient, proxy: FaultProxy, namespace: str, answer: Answer | Drop, error: type[Exception]
) -> None:
    proxy.inject(answer, when=matching("POST", "/configmaps"), times=None)
    with pytest.raises(error):
        await proxied.create(CONFIGMAPS, namespace, config_map("a"))
    assert len([request for request in proxy.requests if request.is_write]) == 1


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("fault", [LoseAnswer, SpoilAnswer, StallAnswer])
async def test_a_write_whose_answer_is_lost_has_landed_and_is_not_repeated(
    proxied: ApiClient,
    proxy: FaultProxy,
    api: ApiClient,
    namespace: str,
    method: str,
    fault: type[LoseAnswer] | type[SpoilAnswer] | type[StallAnswer],
) -> None:
    for name in ("changed", "deleted"):
        await api.create(CONFIGMAPS, namespace, config_map(name))
    # The connection that breaks has been used before: that is where an HTTP library likes to repeat by itself.
    await proxied.get(CONFIGMAPS, namespace, "changed")
    writes: dict[str, Callable[[], Awaitable[object]]] = {
        "POST": lambda: proxied.create(CONFIGMAPS, namespace, config_map("created")),
        "PUT": lambda: proxied.replace(CONFIGMAPS, namespace, "changed", config_map("changed", x="1")),
        "PATCH": lambda: proxied.patch(CONFIGMAPS, namespace, "changed", {"data": {"x": "1"}}),
        "DELETE": lambda: proxied.delete(CONFIGMAPS, namespace, "deleted"),
    }
    proxy.inject(fault(), when=matching(method), times=None)
    with pytest.raises(ServerError if fault is SpoilAnswer else Unreachable):
        await writes[method]()

    assert proxy.writes == 1
    left = {item["metadata"]["name"]: item.get("data") for item in await api.list(CONFIGMAPS, namespace)}
    landed = {
        "POST": "created" in left,
        "PUT": left["changed"] == {"x": "1"},
        "PATCH": left["changed"] == {"x": "1"},
        "DELETE": "deleted" not in left,
    }
    assert landed[method]


async def test_a_read_is_repeated_once_when_its_connection_breaks(
    proxied: ApiClient, proxy: FaultProxy, namespace: str
) -> None:
    proxy.inject(Drop(), when=matching("GET", "/configmaps"), times=1)
    assert await proxied.list(CONFIGMAPS, namespace) == []
    proxy.inject(Drop(), when=matching("GET", "/configmaps"), times=2)
    with pytest.raises(Unreachable):
        await proxied.list(CONFIGMAPS, namespace)
    assert len(proxy.requests) == 4


async def test_a_read_waits_as_long_as_a_429_says(proxy: FaultProxy, namespace: str) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    proxy.inject(Answer(429, "TooManyRequests", retry_after=7), when=matching("GET"), times=2)
    async with ApiClient(proxy.connection(), sleep=sleep) as client:
        assert await client.list(CONFIGMAPS, namespace) == []
    assert slept == [7, 7]


async def test_a_list_whose_pages_expire_is_asked_for_at_once(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    proxy.inject(Answer(410, "Expired"), when=lambda request: request.query.get("limit") == "500")
    await api.create(CONFIGMAPS, namespace, config_map("a"))
    assert len(await proxied.list(CONFIGMAPS, namespace)) == 1


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    async with ApiClient(Connection(server="http://127.0.0.1:1")) as client:
        with pytest.raises(Unreachable):
            await client.get(PODS, "default", "p")


async def test_a_callback_sees_each_write_before_and_after_and_can_kill_there(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    seen: list[tuple[int, str]] = []

    def kill_at_the_second(write: Write) -> None:
        seen.append((write.number, write.phase.value))
        if (write.number, write.phase) == (2, Phase.BEFORE):
            raise KillHere

    proxy.on_write(kill_at_the_second, when=matching(path="/configmaps"))
    await proxied.create(CONFIGMAPS, namespace, config_map("first"))
    with pytest.raises(Unreachable):
        await proxied.create(CONFIGMAPS, namespace, config_map("second"))
    assert seen == [(1, "before"), (1, "after"), (2, "before")]
    assert [item["metadata"]["name"] for item in await api.list(CONFIGMAPS, namespace)] == ["first"]


async def test_custom_resources_are_served_too(api: ApiClient, namespace: str) -> None:
    assert await api.list(RAYJOBS, namespace) == []
