"""An API server for one kind of pod write, that fails as a test says. The real one is used in tests/integration."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import msgspec

from muster.kube.errors import ApiError, Conflict, NotFound
from muster.kube.objects import Pod

Fault = Callable[[], object]
"""Runs in place of a request; it may change the pods first, and raises what the server answers."""


class ScriptedApi:
    """Pods by namespace/name, and an informer's store of them that lags behind until `record`.

    `faults[verb]` are used up in order by the requests of that verb (patch, bind, get, delete); then all goes well.
    """

    def __init__(self, *pods: Pod) -> None:
        self.pods = {pod.key: pod for pod in pods}
        self.shown = dict(self.pods)
        self.faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.calls: list[str] = []
        self.patches: list[Any] = []

    # what Binder and Evictor use of an informer

    def record(self, pod: Pod) -> None:
        self.shown[pod.key] = pod

    # what they use of a client

    async def get(self, resource: Any, namespace: str, name: str, *, decode: Any = dict) -> Any:
        self._request("get")
        return self._found(namespace, name)

    async def patch(self, resource: Any, namespace: str, name: str, patch: Any, **_: Any) -> Any:
        self._request("patch")
        self.patches.append(patch)
        pod = self._found(namespace, name)
        if isinstance(patch, dict):
            if patch["metadata"]["uid"] != pod.metadata.uid:
                raise Conflict(409, "Conflict", "uid")
            return pod
        self.pods[pod.key] = patched(pod, patch)
        return self.pods[pod.key]

    async def bind(self, namespace: str, pod: str, *, uid: str, node: str) -> None:
        self._request(f"bind {node}")
        found = self._found(namespace, pod)
        taken = found.spec.node_name or found.metadata.deletion_timestamp
        if found.metadata.uid != uid or taken or found.spec.scheduling_gates:
            raise Conflict(409, "Conflict", "")
        self.change(found.key, node=node)

    async def delete(self, resource: Any, namespace: str, name: str, *, uid: str) -> None:
        self._request("delete")
        if self._found(namespace, name).metadata.uid != uid:
            raise Conflict(409, "Conflict", "uid")
        del self.pods[f"{namespace}/{name}"]

    # what a test does to the pods

    def change(
        self,
        key: str,
        *,
        node: str | None = None,
        gates: list[str] | None = None,
        uid: str | None = None,
        leaving: bool = False,
    ) -> Pod:
        pod = self.pods[key]
        spec, metadata = pod.spec, pod.metadata
        if node is not None:
            spec = msgspec.structs.replace(spec, node_name=node)
        if gates is not None:
            spec = msgspec.structs.replace(
                spec, scheduling_gates=[one for one in spec.scheduling_gates if one.name in gates]
            )
        if uid is not None:
            metadata = msgspec.structs.replace(metadata, uid=uid)
        if leaving:
            metadata = msgspec.structs.replace(metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        self.pods[key] = msgspec.structs.replace(pod, metadata=metadata, spec=spec)
        return self.pods[key]

    def _request(self, call: str) -> None:
        self.calls.append(call)
        verb = call.split()[0]
        if self.faults[verb]:
            self.faults[verb].popleft()()

    def _found(self, namespace: str, name: str) -> Pod:
        try:
            return self.pods[f"{namespace}/{name}"]
        except KeyError:
            raise NotFound(404, "NotFound", name) from None


def patched(pod: Pod, patch: list[dict[str, Any]]) -> Pod:
    """Carry a JSON patch out, as far as it is written here: test, remove, add."""
    document = msgspec.json.decode(msgspec.json.encode(pod))
    try:
        for operation in patch:
            _apply(document, **operation)
    except LookupError:
        raise Conflict(422, "Invalid", "a path or a test of the JSON patch does not hold") from None
    return msgspec.convert(document, Pod)


def _apply(document: Any, *, op: str, path: str, value: Any = None) -> None:
    *above, last = [part.replace("~1", "/") for part in path.split("/")[1:]]
    place = document
    for part in above:
        place = place[int(part) if isinstance(place, list) else part]
    key: Any = int(last) if isinstance(place, list) and last != "-" else last
    if op == "add" and last == "-":
        place.append(value)
    elif op == "add":
        place[key] = value
    elif op == "remove":
        del place[key]
    elif place[key] != value:
        raise LookupError(path)


class Store:
    """The informer's side of a ScriptedApi."""

    def __init__(self, api: ScriptedApi) -> None:
        self._api = api
        self.record = api.record

    def get(self, namespace: str | None, name: str) -> Pod | None:
        return self._api.shown.get(f"{namespace}/{name}")


def failing(error: ApiError, before: Callable[[], object] = lambda: None) -> Fault:
    """A request that is answered with `error`, after `before` has happened."""

    def fault() -> None:
        before()
        raise error

    return fault
