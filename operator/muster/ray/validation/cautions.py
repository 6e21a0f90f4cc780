"""What is taken, as KubeRay takes it, but can hardly be meant: told to whoever writes it, and no reason to refuse."""

from __future__ import annotations

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster, RayClusterSpec
from muster.api.rayjob import RayJob
from muster.ray.validation.view import Problems


def ray_cluster_cautions(cluster: RayCluster) -> list[FieldProblem]:
    """Those of a RayCluster."""
    return list(_replicas(cluster.spec, "spec"))


def ray_job_cautions(job: RayJob) -> list[FieldProblem]:
    """Those of the cluster in a RayJob."""
    spec = job.spec.ray_cluster_spec
    return list(_replicas(spec, "spec.rayClusterSpec")) if spec is not None else []


def _replicas(spec: RayClusterSpec, path: str) -> Problems:
    """`replicas` that another number takes the place of. One below minReplicas may be the default of who wrote none."""
    for index, group in enumerate(spec.worker_groups):
        replicas, field = group.replicas or 0, f"{path}.workerGroupSpecs[{index}].replicas"
        if replicas < 0:
            yield FieldProblem(field, f"is {replicas}; minReplicas, {group.minimum}, counts instead")
        elif replicas > group.maximum:
            yield FieldProblem(field, f"is {replicas}; maxReplicas, {group.maximum}, counts instead")
