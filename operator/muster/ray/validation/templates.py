"""The pod templates that a user wrote, each with its path: the API server is asked whether it would take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.api.raycluster import RayCluster, RayClusterSpec
from muster.api.rayjob import RayJob


@dataclass(frozen=True, slots=True)
class WrittenTemplate:
    """A pod template as it stands in the object, at `path` (`spec.headGroupSpec.template`)."""

    path: str
    template: Mapping[str, Any]


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
    return [head, *workers]
