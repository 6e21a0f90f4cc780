"""Carrying out the deletions that are due after the end, the largest first. What is done is seen in what is there."""

from __future__ import annotations

import copy
from contextlib import suppress

from muster.controllers.clock import seconds_of
from muster.controllers.context import ObservedRayCluster
from muster.controllers.gang import release_pod_group
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.deletion_plan import DeletionPlan, Policy, deletion_plan
from muster.controllers.rayjob.finalizer import holds_finalizer
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.teardown import delete_cluster
from muster.controllers.runner import Requeue
from muster.kube.errors import NotFound
from muster.kube.resource import RAYJOBS

_DECIDED_BY = ("ttlSecondsAfterFinished", "shutdownAfterJobFinishes", "deletionStrategy", "clusterSelector")


async def delete_what_is_due(look: Look) -> Requeue | None:
    """Delete what has to go by now; when the next thing has to."""
    if look.problems_with(*_DECIDED_BY):
        # What can't be is no reason to destroy anything: all stays until it has been corrected.
        return None
    plan = deletion_plan(look.job.spec, look.state, look.ray_status, look.context.options.deletion_defaults)
    _tell_unruled(look, plan)
    ended = seconds_of(look.status.end_time) or look.now
    due = [one.policy for one in plan.deletions if ended + one.after <= look.now]
    later = [ended + one.after for one in plan.deletions if ended + one.after > look.now]
    again = [Requeue(min(later) - look.now)] if later else []
    if due and (left := await _delete(look, max(due))) is not None:
        again.append(left)
    return min(again, key=lambda requeue: requeue.after, default=None)


async def _delete(look: Look, policy: Policy) -> Requeue | None:
    match policy:
        case Policy.SELF:
            return await _delete_itself(look)
        case Policy.CLUSTER:
            cluster = await job_cluster.find(look)
            if cluster is not None and job_cluster.is_the_jobs(look, cluster):
                await release_pod_group(look.context, look.job)
                await delete_cluster(look)
        case Policy.WORKERS:
            await _delete_workers(look)
        case Policy.NONE:
            pass
    return None


async def _delete_itself(look: Look) -> Requeue | None:
    """Delete the RayJob, if it still is as it was seen, and with it all that was made for it."""
    if holds_finalizer(look):  # its Ray job may still run
        return Requeue(look.context.options.poll_interval)
    with suppress(NotFound):
        await look.context.primaries[RAYJOBS].delete(look.raw)
    return None


async def _delete_workers(look: Look) -> None:
    """Suspend all worker groups of the job's own cluster, so that the head, its dashboard and its logs stay."""
    cluster = await job_cluster.find(look)
    if cluster is None or not job_cluster.is_the_jobs(look, cluster) or cluster.metadata.deletion_timestamp is not None:
        return
    spec = copy.deepcopy(cluster.spec)
    running = [group for group in spec.get("workerGroupSpecs") or [] if not group.get("suspend")]
    if running:
        for group in running:
            group["suspend"] = True
        with look.telling("FailedToUpdateRayCluster", f"update RayCluster {cluster.key}", "Update"):
            updated = await look.context.ray_clusters.replace_spec(cluster, spec, {})
        _tell_suspended(look, updated)


def _tell_suspended(look: Look, cluster: ObservedRayCluster) -> None:
    message = f"Suspended the worker groups of RayCluster {cluster.key}"
    look.say("Normal", "UpdatedRayCluster", message, "Update", change=cluster.metadata.resource_version)


def _tell_unruled(look: Look, plan: DeletionPlan) -> None:
    if not plan.unruled:
        return
    default = look.context.options.deletion_defaults.cluster_ttl
    what = "its cluster stays" if default is None else f"its cluster goes after {default:g} s, as the operator is set"
    ended = f"jobStatus {look.ray_status or 'empty'}, jobDeploymentStatus {look.state}"
    message = f"spec.deletionStrategy.deletionRules: no rule is for a job that ended with {ended}; {what}"
    look.say("Warning", "NoDeletionRule", message, "Delete")
