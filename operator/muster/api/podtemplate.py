"""A PodTemplateSpec as far as Muster reads it.

Templates travel as plain dicts, since they are the API server's business. Before anything is built from one, it is
read through this model: what Muster touches must have the right types, or the field is named.
"""

from __future__ import annotations

from muster.api.fieldtypes import Object, ResourceList
from muster.api.model import Model


class EnvVar(Model):
    """A variable of a container; `valueFrom` is kept as it is."""

    name: str
    value: str | None = None
    value_from: Object | None = None


class ContainerPort(Model):
    """A port that a container listens on."""

    container_port: int
    name: str | None = None
    host_port: int | None = None


class VolumeMount(Model):
    """Where a volume is in the container."""

    name: str
    mount_path: str


class ResourceRequirements(Model):
    """What a container asks for, and the most that it may have."""

    requests: ResourceList | None = None
    limits: ResourceList | None = None


class Container(Model):
    """A container or init container. `restartPolicy: Always` makes an init container a sidecar."""

    name: str
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    ports: list[ContainerPort] | None = None
    resources: ResourceRequirements | None = None
    volume_mounts: list[VolumeMount] | None = None
    restart_policy: str | None = None
    security_context: Object | None = None


class Named(Model):
    """A volume or a scheduling gate: only the name is read."""

    name: str


class PodSpec(Model):
    """The spec of the pods."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    volumes: list[Named] | None = None
    resources: ResourceRequirements | None = None
    overhead: ResourceList | None = None
    node_selector: dict[str, str] | None = None
    affinity: Object | None = None
    tolerations: list[Object] | None = None
    scheduling_gates: list[Named] | None = None
    scheduler_name: str | None = None
    service_account_name: str | None = None
    node_name: str | None = None
    priority_class_name: str | None = None
    restart_policy: str | None = None
    security_context: Object | None = None


class TemplateMetadata(Model):
    """Labels, annotations and finalizers that the pods get."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class PodTemplateSpec(Model):
    """The template of a group's pods."""

    metadata: TemplateMetadata | None = None
    spec: PodSpec | None = None

    @property
    def containers(self) -> list[Container]:
        """The containers; the first is Ray's."""
        return (self.spec.containers if self.spec else None) or []

    @property
    def init_containers(self) -> list[Container]:
        """The init containers."""
        return (self.spec.init_containers if self.spec else None) or []
