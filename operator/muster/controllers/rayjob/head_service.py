"""The RayJob's own service `<rayjob>-head-svc`: leads to the head of the cluster that the job has at the time."""

from __future__ import annotations

from muster.api.raycluster import RayCluster
from muster.controllers.rayjob.look import Look
from muster.ray.services import ray_job_head_service


async def ensure_head_service(look: Look, cluster: RayCluster) -> None:
    """Create the service, or point it to the present cluster (a retry has a new one). Raises NotOurs."""
    manifest = ray_job_head_service(look.job, cluster, with_cluster_ip=look.context.options.pods.head_cluster_ip)
    key = f"{look.job.metadata.namespace}/{manifest['metadata']['name']}"
    with look.telling("FailedToCreateService", f"create service {key}", "Create"):
        found, created = await look.context.services.ensure(manifest, look.job)
    if created:
        look.say("Normal", "CreatedService", f"Created service {found.key}", "Create", change=found.metadata.uid)
    elif found.spec.selector != manifest["spec"]["selector"]:
        with look.telling("FailedToUpdateService", f"update service {key}", "Update"):
            patched = await look.context.services.patch(found, {"spec": {"selector": manifest["spec"]["selector"]}})
        message = f"Service {found.key} leads to {cluster.metadata.name} now"
        look.say("Normal", "UpdatedService", message, "Update", change=patched.metadata.resource_version)
