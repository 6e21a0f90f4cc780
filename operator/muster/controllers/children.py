"""The objects that a controller makes for its owners: read from an informer, written with care.

What is written is in the informer's store at once (read your writes), so that the next look does not do it again. What
a look creates or deletes is no news to its owner; what else the API server answers with may hold what others did. What
belongs to somebody else is never changed or deleted: ownership is the UID of the controlling owner reference, and every
delete names the UID that it means. That an object is there already, or gone already, is normal.

A child that can't be read is taken for one of which no more is known than its metadata: whose it is, and that it can be
deleted. So it stops no look at its owner, and what its owner wants of it is written over what it has; `unreadable`
tells of it.

The API server takes any owner reference, also to an object in another namespace, whose UID is no secret. Such a
reference means nothing: an owner's children are in the owner's namespace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.controllers.clock import Clock, SystemClock
from muster.controllers.runner import by_others
from muster.controllers.taken_names import TakenNames
from muster.kube.client import ApiClient, PatchKind
from muster.kube.errors import AlreadyExists, Conflict, NotFound
from muster.kube.informer import Change, Informer
from muster.kube.malformed import MalformedObject, UnreadableObject
from muster.kube.objects import ApiObject, ObjectMeta, controller_of
from muster.kube.resource import Resource

CONTROLLER_INDEX = "controller"
"""Index of informers: the object's namespace and the UID of the owner that controls it, "namespace/uid"."""


T = TypeVar("T", bound=ApiObject)


class NotOurs(Exception):  # noqa: N818 - a state of affairs
    """An object of the wanted name is there and belongs to somebody else, perhaps to a former owner of our name."""

    def __init__(self, resource: Resource, metadata: ObjectMeta, wanted_by: RayCluster | RayJob) -> None:
        owner = controller_of(metadata)
        self.name = f"{resource.kind} {metadata.name}"
        self.owner = f"{owner.kind} {owner.name} with UID {owner.uid}" if owner else "nobody that Muster knows"
        super().__init__(
            f"{self.name} exists already and belongs to {self.owner}; delete it or give it another name, or give the "
            f"{wanted_by.definition.kind} another name"
        )

    def advise(self, advice: str) -> None:
        """Say what else can be done about it, as the rest of the sentence."""
        self.args = (f"{self}, or {advice}",)


def controlled_by(metadata: ObjectMeta, uid: str) -> bool:
    """Whether the object's managing owner has this UID."""
    owner = controller_of(metadata)
    return owner is not None and owner.uid == uid


class Children(Generic[T]):
    """One kind of objects that controllers make."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        decode: type[T],
        informer: Informer[T],
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self.resource = resource
        self._decode = decode
        self.informer = informer
        self._deleted: set[str] = set()
        self._taken = TakenNames(clock or SystemClock())
        informer.add_index(CONTROLLER_INDEX, _controllers)
        informer.subscribe(self._forget_deleted)
        informer.on_malformed_deleted(lambda found: self._deleted.discard(found.uid))

    def _forget_deleted(self, change: Change[T]) -> None:
        if change.new is None and change.old is not None:
            self._deleted.discard(change.old.metadata.uid)

    def get(self, namespace: str | None, name: str) -> T | None:
        """The object as last seen; None when there is none, or when it has been deleted by us since."""
        found = self.informer.get(namespace, name)
        if found is None and (unreadable := self.informer.unreadable(namespace, name)) is not None:
            found = self._bare(unreadable)
        return None if found is None or found.metadata.uid in self._deleted else found

    def owned_by(self, namespace: str, uid: str) -> list[T]:
        """The children of the owner in this namespace with this UID, as last seen; those that we deleted left out."""
        found = self.informer.by_index(CONTROLLER_INDEX, f"{namespace}/{uid}")
        bare = [self._bare(one) for one in self.unreadable(namespace, uid)]
        return [one for one in (*found, *bare) if one is not None and one.metadata.uid not in self._deleted]

    def unreadable(self, namespace: str, uid: str) -> list[MalformedObject]:
        """What can't be read of the children of the owner in this namespace with this UID."""
        there = (one for one in self.informer.all_unreadable() if one.namespace == namespace)
        return [one for one in there if one.metadata is not None and controlled_by(one.metadata, uid)]

    def _bare(self, found: MalformedObject) -> T | None:
        return None if found.metadata is None else self._decode(metadata=found.metadata)

    async def read(self, namespace: str | None, name: str) -> T | None:
        """The object as the API server has it now; None when there is none."""
        try:
            return await self._news(self._client.get(self.resource, namespace, name, decode=self._decode))
        except NotFound:
            return None

    async def _news(self, answer: Awaitable[T]) -> T:
        """Record an answer that others may have had a part in: the watch will not tell of it a second time."""
        try:
            found = await answer
        except UnreadableObject as unreadable:
            bare = self._bare(unreadable.found)
            if bare is None:
                raise
            return bare
        with by_others():
            self.informer.record(found)
        return found

    async def create(self, manifest: Mapping[str, Any]) -> T:
        """Create the object. Raises AlreadyExists and the API server's other refusals."""
        namespace = manifest["metadata"].get("namespace")
        created = await self._client.create(self.resource, namespace, manifest, decode=self._decode)
        self.informer.record(created)
        return created

    async def ensure(self, manifest: Mapping[str, Any], owner: RayCluster | RayJob) -> tuple[T, bool]:
        """The object of the manifest's name, created if there is none, and whether this call created it.

        It may be on its way out. Raises NotOurs when its managing owner is not `owner`; where no watch tells when such
        a name is free again, it is tried now and then.
        """
        found = self.get(manifest["metadata"].get("namespace"), manifest["metadata"]["name"])
        if found is None:
            return await self._create_unless_taken(manifest, owner)
        if not controlled_by(found.metadata, owner.metadata.uid):
            raise NotOurs(self.resource, found.metadata, owner)
        return found, False

    async def _create_unless_taken(self, manifest: Mapping[str, Any], owner: RayCluster | RayJob) -> tuple[T, bool]:
        namespace, name = manifest["metadata"].get("namespace"), manifest["metadata"]["name"]
        wanted = (namespace, name, owner.metadata.uid)
        taken_by = self._taken.by(wanted)
        if taken_by is None:
            found, created = await self._create_or_read(manifest)
            if controlled_by(found.metadata, owner.metadata.uid):
                return found, created
            taken_by = found.metadata
            if self.get(namespace, name) is None:  # else the watch will tell of its end
                self._taken.found(wanted, taken_by)
        raise NotOurs(self.resource, taken_by, owner)

    async def _create_or_read(self, manifest: Mapping[str, Any]) -> tuple[T, bool]:
        try:
            return await self.create(manifest), True
        except AlreadyExists as refusal:
            found = await self.read(manifest["metadata"].get("namespace"), manifest["metadata"]["name"])
            if found is None:  # it went away in between: the next look will create it
                raise refusal
            return found, False

    async def patch(self, present: T, patch: Mapping[str, Any]) -> T:
        """Merge `patch` into the object, which must still be the one that was seen (by its UID), else Conflict."""
        meta = present.metadata
        body = {**patch, "metadata": {**patch.get("metadata", {}), "uid": meta.uid}}
        return await self._news(self._client.patch(self.resource, meta.namespace, meta.name, body, decode=self._decode))

    async def replace_spec(self, present: T, spec: Mapping[str, Any], annotations: Mapping[str, str]) -> T:
        """Put `spec` in the place of the object's, and set these annotations, of which it has some already.

        Raises Conflict when it is not as it was seen any more.
        """
        meta = present.metadata
        patch: list[dict[str, Any]] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/spec", "value": dict(spec)},
        ]
        for key, value in annotations.items():
            escaped = key.replace("~", "~0").replace("/", "~1")
            patch.append({"op": "add", "path": f"/metadata/annotations/{escaped}", "value": value})
        return await self._news(
            self._client.patch(
                self.resource, meta.namespace, meta.name, patch, kind=PatchKind.JSON, decode=self._decode
            )
        )

    async def delete(
        self,
        present: T,
        *,
        propagation: str | None = None,
        unchanged: bool = False,
        grace_seconds: int | None = None,
    ) -> bool:
        """Delete exactly this object; False when it had gone, or been replaced by another, before.

        With `unchanged` it is deleted only if it still is as it was seen; `grace_seconds` 0 does not wait for the
        kubelet of a pod. Raises Conflict when it is still there: then
        the refusal was not about its UID.
        """
        meta = present.metadata
        try:
            left = await self._client.delete(
                self.resource,
                meta.namespace,
                meta.name,
                uid=meta.uid,
                resource_version=meta.resource_version if unchanged else None,
                propagation=propagation,
                grace_seconds=grace_seconds,
                decode=self._decode,
            )
        except NotFound:
            self._hide(meta)
            return False
        except Conflict:
            found = await self.read(meta.namespace, meta.name)
            if found is not None and found.metadata.uid == meta.uid:
                raise
            self._hide(meta)
            return False
        except UnreadableObject:  # it is on its way out, and the watch tells of its end
            return True
        if left is None:
            self._hide(meta)
        else:
            self.informer.record(left)
        return True

    def _hide(self, meta: ObjectMeta) -> None:
        """Until the watch tells that the object is gone, we know better."""
        seen = self.get(meta.namespace, meta.name)
        if seen is not None and seen.metadata.uid == meta.uid:
            self._deleted.add(meta.uid)


def _controllers(one: ApiObject) -> Iterable[str]:
    owner = controller_of(one.metadata)
    return [f"{one.metadata.namespace}/{owner.uid}"] if owner is not None else []
