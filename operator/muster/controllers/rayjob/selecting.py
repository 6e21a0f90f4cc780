"""`spec.clusterSelector`: the job waits for a cluster that others made, and makes none.

Neither a PodGroup nor a queue is needed: the cluster's pods have their places already, and the submitter, which is
small, is an ordinary pod.
"""

from __future__ import annotations

from muster.api.rayjob import JobDeploymentStatus
from muster.controllers.context import ObservedRayCluster
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.look import Look
from muster.ray import names
from muster.ray.selection import selected_cluster


async def select(look: Look) -> ObservedRayCluster | None:
    """The selected cluster; None while there is none, which the status says."""
    cluster = await job_cluster.find(look)
    if cluster is not None and cluster.metadata.deletion_timestamp is None:
        return cluster
    state = "is being deleted" if cluster is not None else "does not exist"
    message = f'spec.clusterSelector: RayCluster "{look.status.ray_cluster_name}" {state}; the job waits for one'
    look.say("Warning", "RayClusterNotFound", message, "Validate")
    await look.write(message=message, ray_cluster_status=None)
    return None


async def begin_again_elsewhere(look: Look) -> bool:
    """Whether the spec means another cluster now than the one that the attempt has begun with; then it begins anew."""
    selected, begun_with = selected_cluster(look.job), look.status.ray_cluster_name or ""
    if begun_with == selected or (selected is None and await _is_own(look, begun_with)):
        return False
    message = "spec.clusterSelector was changed" if begun_with else "status.rayClusterName has been taken away"
    await look.write(job_deployment_status=JobDeploymentStatus.RETRYING.value, message=message)
    return True


async def _is_own(look: Look, name: str) -> bool:
    """Whether a cluster of this name is, or would be, the job's own. Another operator may have named it in its way."""
    if names.is_generated(look.job.metadata.name, name):
        return True
    cluster = await job_cluster.find(look)
    return cluster is not None and job_cluster.is_the_jobs(look, cluster)
