"""The pod templates that a user wrote, each with its path: the API server is asked whether it would take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster, RayClusterSpec, WorkerGroupSpec
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

    @property
    def body(self) -> Mapping[str, Any]:
        """What the API server is asked about."""
        return self.template

    @property
    def key(self) -> Mapping[str, Any]:
        """What tells it from others."""
        return self.template

    @property
    def parts(self) -> tuple[WrittenTemplate, ...]:
        """None: it is as it was written."""
        return ()

    def told(self, problem: FieldProblem) -> FieldProblem:
        """A problem at a path in the template, with its path in the object."""
        inner = problem.path
        if self.within:
            inner = inner.removeprefix(self.within).lstrip(".") if inner.startswith(self.within) else ""
        return FieldProblem(f"{self.path}.{inner}" if inner else self.path, problem.message)


def ray_cluster_templates(cluster: RayCluster) -> list[WrittenTemplate]:
    """The head's, then each worker group's."""
    return _of_spec(cluster.spec, "spec")


def ray_job_templates(job: RayJob) -> list[WrittenTemplate]:
    """Those of the job's own cluster, then the submitter's."""
    spec = job.spec.ray_cluster_spec
    found = _of_spec(spec, "spec.rayClusterSpec") if spec is not None else []
    return [*found, *submitter_template(job)]


def head_template(spec: RayClusterSpec, path: str) -> WrittenTemplate:
    """The head's, of a cluster's spec at `path`."""
    return WrittenTemplate(f"{path}.headGroupSpec.template", spec.head_group_spec.template)


def worker_template(group: WorkerGroupSpec, index: int, path: str) -> WrittenTemplate:
    """That of one worker group, by its place in the spec at `path`."""
    return WrittenTemplate(f"{path}.workerGroupSpecs[{index}].template", group.template)


def autoscaler_template(spec: RayClusterSpec, path: str) -> list[WrittenTemplate]:
    """The autoscaler's container with nothing in it but what the user wrote, if anything.

    Mounts are left out: whether there are volumes for them is told by the head's whole template only.
    """
    options = spec.autoscaler_options
    if not spec.autoscaling or options is None:
        return []
    written = {key: value for key, value in options.dump().items() if key in _OF_A_CONTAINER and value is not None}
    container = {"name": autoscaler.CONTAINER, "image": "ray", **written}
    template = {"metadata": {}, "spec": {"containers": [container]}}
    return [WrittenTemplate(f"{path}.autoscalerOptions", template, within="spec.containers[0]")]


def submitter_template(job: RayJob) -> list[WrittenTemplate]:
    """The submitter's, if the user wrote one."""
    template = job.spec.submitter_pod_template
    return [] if template is None else [WrittenTemplate("spec.submitterPodTemplate", template)]


def _of_spec(spec: RayClusterSpec, path: str) -> list[WrittenTemplate]:
    workers = (worker_template(group, index, path) for index, group in enumerate(spec.worker_groups))
    return [head_template(spec, path), *workers, *autoscaler_template(spec, path)]
