"""The pod templates that a user wrote, each with its path: the API server is asked whether it would take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.api.raycluster import RayCluster, RayClusterSpec
from muster.api.rayjob import RayJob
from muster.ray import autoscaler

_OF_A_CONTAINER = ("image", "imagePullPolicy", "resources", "securityContext", "env", "envFrom", "command", "args")


@dataclass(frozen=True, slots=True)
class WrittenTemplate:
    """A pod template as it stands in the object, at `path` (`spec.headGroupSpec.template`).

    `within` is the part of the template that is at `path`, where the rest is only there to make it a template.
    """

    path: str
    template: Mapping[str, Any]
    within: str = ""

    def place(self, path: str) -> str:
        """Where in the object that is which is at `path` in the template."""
        inner = path
        if self.within:
            inner = path.removeprefix(self.within).lstrip(".") if path.startswith(self.within) else ""
        return f"{self.path}.{inner}" if inner else self.path


def ray_cluster_templates(cluster: RayCluster) -> list[WrittenTemplate]:
    """The head's, then each worker group's."""
    return _of_spec(cluster.spec, "spec")


def ray_job_templates(job: RayJob) -> list[WrittenTemplate]:
    """Those of the job's own cluster, then the submitter's."""
    spec = job.spec.ray_cluster_spec
    found = _of_spec(spec, "spec.rayClusterSpec") if spec is not None else []
    if job.spec.submitter_pod_template is not None:
        found.append(WrittenTemplate("spec.submitterPodTemplate", job.spec.submitter_pod_template))
    return found


def _of_spec(spec: RayClusterSpec, path: str) -> list[WrittenTemplate]:
    head = WrittenTemplate(f"{path}.headGroupSpec.template", spec.head_group_spec.template)
    workers = (
        WrittenTemplate(f"{path}.workerGroupSpecs[{index}].template", group.template)
        for index, group in enumerate(spec.worker_groups)
    )
    return [head, *workers, *_of_autoscaler(spec, path)]


def _of_autoscaler(spec: RayClusterSpec, path: str) -> list[WrittenTemplate]:
    """The autoscaler's container with nothing in it but what the user wrote.

    Mounts are left out: whether there are volumes for them is told by the head's whole template only.
    """
    options = spec.autoscaler_options
    if not spec.autoscaling or options is None:
        return []
    written = {key: value for key, value in options.dump().items() if key in _OF_A_CONTAINER and value is not None}
    container = {"name": autoscaler.CONTAINER, "image": "ray", **written}
    template = {"metadata": {}, "spec": {"containers": [container]}}
    return [WrittenTemplate(f"{path}.autoscalerOptions", template, within="spec.containers[0]")]
