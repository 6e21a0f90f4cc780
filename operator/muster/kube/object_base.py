"""What all Kubernetes objects have in common, as they are read (see `muster.kube.objects`)."""

from __future__ import annotations

from typing import ClassVar

import msgspec

Quantities = dict[str, str | int | float]
"""Resource name to quantity, as written."""


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A part of an object: camelCase on the wire, frozen, all by keyword.

    The garbage collector passes it over: what is decoded from JSON and never changed refers to nothing that could refer
    back to it.
    """


class OwnerReference(Part, frozen=True):
    """Who owns an object; `controller` marks the one that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Part, frozen=True):
    """The metadata of an object. `resource_version` is an integer in text form, comparable within one resource."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []


def controller_of(metadata: ObjectMeta) -> OwnerReference | None:
    """The owner that manages the object."""
    for owner in metadata.owner_references:
        if owner.controller:
            return owner
    return None


class ApiObject(Part, frozen=True):
    """A whole object: what all kinds have in common. Every decoded type derives from it."""

    status_is_derived: ClassVar[bool] = False
    """Whether the status is worked out from other objects, and written anew: so nobody needs the one that is stored."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` alone for a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class PartialObject(ApiObject, frozen=True):
    """The metadata of any object, whatever else it holds."""


class Condition(Part, frozen=True):
    """A condition; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    last_probe_time: str | None = None
    observed_generation: int | None = None
