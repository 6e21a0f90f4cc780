"""What the types of a RayCluster or RayJob can't say: which combinations of values make sense.

The rules are KubeRay's, with those added whose breach would leave something half-created (a pod that the API server
refuses, two groups of one name). One function a rule; all problems are told at once, each with the field and what to
write instead. Features that this version does not have are refused by name rather than passed over in silence.

Pure and total: any object that could be parsed gets a list, an empty one when nothing is wrong.
"""

from __future__ import annotations

from muster.ray.validation.cautions import ray_cluster_cautions, ray_job_cautions
from muster.ray.validation.ray_cluster import head_pod_problems, validate_ray_cluster
from muster.ray.validation.ray_job import validate_ray_job

__all__ = [
    "head_pod_problems",
    "ray_cluster_cautions",
    "ray_job_cautions",
    "validate_ray_cluster",
    "validate_ray_job",
]
