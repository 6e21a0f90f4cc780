"""A Service as far as Muster reads the one that a head group may bring along."""

from __future__ import annotations

from pydantic import Field

from muster.api.metadata import ObjectMeta
from muster.api.model import Model


class ServicePort(Model):
    """A port of the service."""

    port: int
    name: str | None = None


class ServiceSpec(Model):
    """Type, ports and selector, and where else it may lead."""

    type: str | None = None
    external_name: str | None = None
    external_ips: list[str] | None = Field(default=None, alias="externalIPs")
    ports: list[ServicePort] | None = None
    selector: dict[str, str] | None = None


class Service(Model):
    """`headGroupSpec.headService`."""

    metadata: ObjectMeta | None = None
    spec: ServiceSpec | None = None
