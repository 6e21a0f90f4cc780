"""The custom resources of one kind that a reconciler looks after: read from an informer, written with care.

A look starts from what the informer has, so that it costs the API server nothing. That is the present state unless
something newer may exist: kopf's watch has told of a later version, a write was refused, or nobody knows whether it has
landed. Then the API server is asked once, and its answer is the informer's from then on. Each write
names the version that it was decided on and is in the informer's store at once, so the next look starts from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

import msgspec

from muster.kube.client import ApiClient
from muster.kube.errors import UNREADABLE, ApiError, NotFound
from muster.kube.informer import Change, Informer
from muster.kube.objects import ApiObject
from muster.kube.resource import Resource
from muster.kube.store import number, version_of

Raw = dict[str, Any]
"""An object as JSON has it. Of the metadata those parts that `ObjectMeta` has are there."""

_NEWER_THAN_ANY: Final = 2**64


class ObservedResource(ApiObject, frozen=True):
    """A custom resource as it is stored: its own reconciler judges spec and status."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


T = TypeVar("T", bound=ObservedResource)


class Primaries(Generic[T]):
    """All objects of `resource`, by their keys "namespace/name"."""

    def __init__(self, client: ApiClient, resource: Resource, decode: type[T], informer: Informer[T]) -> None:
        self._client = client
        self._resource = resource
        self._decode = decode
        self._informer = informer
        self._newer: dict[str, int] = {}
        """The version that each of these objects has at least: the informer's may be an older one."""
        self._own: dict[str, int] = {}
        """The version that our last write of each object made."""

    def told_of(self, key: str, resource_version: str) -> bool:
        """Another watch has seen this version of the object, or its end.

        Says whether that is news: our own writes are none, nor is what they were decided on.
        """
        version = number(resource_version)
        if version > self._version_of(key):
            self._newer[key] = max(version, self._newer.get(key, 0))
        own = self._own.get(key, 0)
        # An informer that has an older one than we wrote has begun anew, with a store restored from a backup.
        return not version or version > own or self._version_of(key) < own

    def tell_ends(self, tell: Callable[[str], None]) -> None:
        """Call `tell` with the key of each object that is gone; one that went unwatched is found by the next list."""

        def changed(change: Change[T]) -> None:
            if change.new is None:
                tell(change.object.key)

        self._informer.subscribe(changed)

    async def read(self, key: str) -> Raw | None:
        """The object of the key; None when there is none, which is always the API server's word. Raises ApiError."""
        namespace, name = key.split("/", 1)
        found = self._informer.get(namespace, name)
        if found is not None and version_of(found) >= self._newer.get(key, 0):
            self._newer.pop(key, None)
            return self._as_raw(found)
        self._newer.pop(key, None)
        try:
            raw = await self._client.get(self._resource, namespace, name)
        except NotFound:
            self._own.pop(key, None)
            if found is not None:  # the informer lags, and may for long
                self._newer[key] = version_of(found) + 1
            return None
        except BaseException:
            self._newer[key] = _NEWER_THAN_ANY
            raise
        self._record(raw)
        return raw

    async def patch(self, raw: Raw, change: Mapping[str, Any], subresource: str | None = None) -> Raw:
        """Merge `change` into the object, if it still is as it was read; return it as it is then.

        Raises Conflict when it has changed since: a decision would rest on old facts; NotFound when it is gone.
        """
        meta = raw["metadata"]
        body = {**change, "metadata": {**change.get("metadata", {}), "resourceVersion": meta["resourceVersion"]}}
        with self._doubting(raw):
            patched = await self._client.patch(
                self._resource, meta["namespace"], meta["name"], body, subresource=subresource
            )
        self._own[f"{meta['namespace']}/{meta['name']}"] = number(patched["metadata"]["resourceVersion"])
        self._record(patched)
        return patched

    async def delete(self, raw: Raw) -> None:
        """Delete the object, if it still is as it was read, and in the background what it owns.

        Raises Conflict when it has changed since, NotFound when it is gone.
        """
        meta = raw["metadata"]
        preconditions = {"uid": meta["uid"], "resource_version": meta["resourceVersion"]}
        with self._doubting(raw):
            await self._client.delete(
                self._resource, meta["namespace"], meta["name"], propagation="Background", **preconditions
            )

    @contextmanager
    def _doubting(self, raw: Raw) -> Iterator[None]:
        """After a write that was refused, or may have landed unseen: the watch may take long to tell what is now."""
        try:
            yield
        except ApiError:
            self._newer[f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"] = _NEWER_THAN_ANY
            raise

    def _version_of(self, key: str) -> int:
        found = self._informer.get(*key.split("/", 1))
        return 0 if found is None else version_of(found)

    def _as_raw(self, found: T) -> Raw:
        raw = {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            "metadata": msgspec.to_builtins(found.metadata),
        }
        if found.spec:
            raw["spec"] = found.spec
        if found.status:
            raw["status"] = found.status
        return raw

    def _record(self, raw: Raw) -> None:
        try:
            self._informer.record(msgspec.convert(raw, self._decode))
        except UNREADABLE:  # the informer has set it apart too, so that each look asks the API server
            return
