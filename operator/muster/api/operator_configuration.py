"""The operator's configuration file, as KubeRay's operator takes it (config.ray.io/v1alpha1, kind Configuration)."""

from __future__ import annotations

from muster.api.fieldtypes import Object
from muster.api.model import Model


class OperatorConfiguration(Model):
    """What every Ray pod gets that this operator makes. Other fields are in `model_extra`."""

    api_version: str | None = None
    kind: str | None = None
    head_sidecar_containers: list[Object] | None = None
    worker_sidecar_containers: list[Object] | None = None
    default_container_envs: list[Object] | None = None
    default_pod_annotations: dict[str, str] | None = None
    default_pod_labels: dict[str, str] | None = None
