"""metadata of an object, as far as Muster reads it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from muster.api.fieldtypes import Timestamp
from muster.api.model import Model


def _null_is_empty(value: object) -> object:
    return {} if value is None else value


StringMap = Annotated[dict[str, str], BeforeValidator(_null_is_empty)]


class OwnerReference(Model):
    """Who an object belongs to; it is deleted with its owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    """`labels` and `annotations` are empty when absent: the API server makes no difference for them."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    labels: StringMap = Field(default_factory=dict)
    annotations: StringMap = Field(default_factory=dict)
    owner_references: list[OwnerReference] | None = None
    finalizers: list[str] | None = None
