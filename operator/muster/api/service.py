"""A Service as far as Muster reads the one that a head group may bring along."""

from __future__ import annotations

from muster.api.metadata import ObjectMeta
from muster.api.model import Model


class ServicePort(Model):
    """A port of the service."""

    port: int
    name: str | None = None


class ServiceSpec(Model):
    """Type, ports and selector."""

    type: str | None = None
    ports: list[ServicePort] | None = None
    selector: dict[str, str] | None = None


class Service(Model):
    """`headGroupSpec.headService`."""

    metadata: ObjectMeta | None = None
    spec: ServiceSpec | None = None
