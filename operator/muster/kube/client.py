"""The API server as verbs: get, list, create, replace, patch, delete, bind, and the stream that informers live on.

Bodies are plain dicts; answers are decoded into the type asked for (a msgspec Struct of `muster.kube.objects`, or a
dict); one of another shape raises UnreadableObject, a write's after it has landed. Every failure is an ApiError. Writes
are sent once (see `transport`): after `Unreachable` or `ServerError` a write may have landed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, Self

import msgspec
from typing_extensions import TypeVar

from muster.kube.config import Connection
from muster.kube.errors import UNREADABLE, Conflict, Expired, Invalid, Undecodable, error_from_status
from muster.kube.malformed import MalformedObject, UnreadableObject, read_again
from muster.kube.resource import PODS, Resource
from muster.kube.transport import Query, Sleep, Transport

T = TypeVar("T", default=dict[str, Any])

LIST_CHUNK: Final = 500
"""Objects in one page of a list."""


class PatchKind(Enum):
    """The kinds of patch, by their content types. APPLY is server-side apply and needs a field manager."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
    """Where a page of a list stands: the version of the whole list, and the token of the next page ("" at the end)."""

    resource_version: str = ""
    continue_: str = ""


class Page(msgspec.Struct):
    """A page of a list, its objects not decoded yet, so that a malformed one harms nobody else."""

    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class WatchEvent(msgspec.Struct):
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, and the object, not decoded yet."""

    type: str
    object: msgspec.Raw


_decode_page: Final = msgspec.json.Decoder(Page).decode
_decode_event: Final = msgspec.json.Decoder(WatchEvent).decode


class ApiClient:
    """A client of one API server; open it with `async with`.

    `timeout` is the longest a request may take once it is sent, in seconds; `concurrency` how many may be under way at
    once, watches not counted; the others wait for their turn.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str = "muster",
        timeout: float = 30.0,
        concurrency: int = 50,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._transport = Transport(
            connection, user_agent=user_agent, timeout=timeout, concurrency=concurrency, sleep=sleep
        )

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._transport.__aexit__(*exception)

    async def get(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        decode: type[T] = dict,  # type: ignore[assignment]
    ) -> T:
        """One object. Raises NotFound."""
        return _decoded(await self._transport.read(resource.path(namespace, name)), decode, resource)

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        decode: type[T] = dict,  # type: ignore[assignment]
    ) -> list[T]:
        """All objects of a kind in one namespace, or (None) in all. Raises Undecodable if one of them is malformed."""
        select = {"label_selector": label_selector, "field_selector": field_selector}
        try:
            return [
                _decoded(raw, decode, resource) async for raw in self._items(resource, namespace, LIST_CHUNK, **select)
            ]
        except Expired:  # the pages took longer than the server keeps a moment: ask for all at once
            return [_decoded(raw, decode, resource) async for raw in self._items(resource, namespace, 0, **select)]

    async def _items(
        self, resource: Resource, namespace: str | None, chunk: int, **select: str | None
    ) -> AsyncGenerator[msgspec.Raw, None]:
        async for page in self.pages(resource, namespace, chunk=chunk, **select):
            for raw in page.items or []:
                yield raw

    async def create(
        self,
        resource: Resource,
        namespace: str | None,
        body: Mapping[str, Any],
        *,
        dry_run: bool = False,
        strict: bool = False,
        decode: type[T] = dict,  # type: ignore[assignment]
    ) -> T:
        """Create the object that `body` describes, under its own name. Raises AlreadyExists, Invalid.

        With `dry_run` the server only judges it; with `strict` it refuses fields that it does not know.
        """
        query = {"dryRun": "All" if dry_run else None, "fieldValidation": "Strict" if strict else None}
        answer = await self._transport.write("POST", resource.path(namespace), body, query=query)
        return _decoded(answer, decode, resource)

    async def replace(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        body: Mapping[str, Any],
        *,
        subresource: str | None = None,
        decode: type[T] = dict,  # type: ignore[assignment]
    ) -> T:
        """Replace the whole object (or subresource). With `metadata.resourceVersion` in it, raises Conflict when the
        object has changed since.
        """
        path = resource.path(namespace, name, subresource)
        return _decoded(await self._transport.write("PUT", path, body), decode, resource)

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        kind: PatchKind = PatchKind.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        decode: type[T] = dict,  # type: ignore[assignment]
    ) -> T:
        """Change parts of an object. Raises Conflict when a precondition does not hold: `uid` or `resourceVersion` in
        the patch's metadata, a `test` in a JSON patch.

        `force` takes over fields of other managers; it goes with APPLY only.
        """
        path = resource.path(namespace, name, subresource)
        query = {"fieldManager": field_manager, "force": "true" if force else None}
        try:
            answer = await self._transport.write("PATCH", path, patch, query=query, content_type=kind.value)
        except Invalid as error:
            if kind is PatchKind.JSON and not error.details and _has_test(patch):
                # The server has no other word for a test that failed.
                raise Conflict(error.status, error.reason, "a test of the JSON patch does not hold") from error
            raise
        return _decoded(answer, decode, resource)

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
        decode: type[T] = dict,  # type: ignore[assignment]
    ) -> T | None:
        """Delete an object, if it still has this UID and version (else Conflict; NotFound when it is gone).

        Returns the object as the server left it (still there while finalizers or a grace period hold it), or None
        when the server only said that it is done. `propagation` is Background, Foreground or Orphan.
        """
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {key: value for key, value in preconditions.items() if value is not None} or None,
            "propagationPolicy": propagation,
            "gracePeriodSeconds": grace_seconds,
        }
        body = {key: value for key, value in options.items() if value is not None}
        answer = await self._transport.write("DELETE", resource.path(namespace, name), body)
        return None if _decoded(answer, _Kind, resource).kind == "Status" else _decoded(answer, decode, resource)

    async def bind(self, namespace: str, pod: str, *, uid: str, node: str) -> None:
        """Bind a pod to a node. Raises Conflict when the pod is bound already or has another UID, NotFound."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._transport.write("POST", PODS.path(namespace, pod, "binding"), binding)

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        chunk: int = LIST_CHUNK,
    ) -> AsyncGenerator[Page, None]:
        """A list in pages of `chunk` objects (0: one page for all), all of one moment.

        Raises Expired when that moment is too long ago for the server to go on.
        """
        query = {"labelSelector": label_selector, "fieldSelector": field_selector, "limit": str(chunk)}
        token: str | None = None
        while token != "":
            answer = await self._transport.read(resource.path(namespace), {**query, "continue": token})
            page = _page(answer)
            yield page
            token = page.metadata.continue_

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str | None = None,
        field_selector: str | None = None,
        timeout_seconds: int,
        read_timeout: float,
    ) -> AsyncGenerator[Sequence[WatchEvent], None]:
        """What changes after `resource_version`, in the batches in which it comes, bookmarks included.

        Ends when the server ends it (after `timeout_seconds` at the latest). Raises Expired when the version is too
        old, Unreachable when the connection breaks or is silent for `read_timeout` seconds, Undecodable when a line is
        no event at all.
        """
        query: Query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        async with self._transport.stream(resource.path(namespace), query, read_timeout) as stream:
            rest = b""
            async for chunk in stream.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                if lines:
                    yield [_event(line) for line in lines if line]


def _has_test(patch: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> bool:
    return not isinstance(patch, Mapping) and any(operation.get("op") == "test" for operation in patch)


class _Kind(msgspec.Struct):
    kind: str = ""


def _decoded(answer: bytes | msgspec.Raw, kind: type[T], resource: Resource) -> T:
    try:
        decoded: T = msgspec.json.decode(answer, type=kind)
    except UNREADABLE as error:
        found = read_again(answer, kind, resource, error)
        if isinstance(found, MalformedObject):
            raise UnreadableObject(found) from error
        return found
    return decoded


def _page(answer: bytes) -> Page:
    try:
        return _decode_page(answer)
    except UNREADABLE as error:
        raise Undecodable(f"not a list: {error}") from error


def _event(line: bytes) -> WatchEvent:
    try:
        event = _decode_event(line)
    except UNREADABLE as error:
        raise Undecodable(f"not a watch event: {error}") from error
    if event.type == "ERROR":
        raise error_from_status(event.object)
    return event
