"""Clusters of the job's own that its status does not name, and what else an earlier attempt has left.

Users may write the status: who wipes it, names another cluster in it or sets another state leaves behind what nothing
else would ever reach. No such cluster keeps nodes, and no attempt begins beside one, else the program would run twice.
Between attempts a stray is named in the status and taken down as any attempt is, to its last pod; a job that has a
cluster of its own besides, or has ended, has it deleted.

The name of a cluster is stored before it is made. So a cluster that was seen first, and is named in a status that is
the present one, is a stray; what informers say is not enough, for each may lag behind the other.
"""

from __future__ import annotations

from muster.api.rayjob import JobDeploymentStatus
from muster.controllers.context import ObservedRayCluster
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.gang import in_passing
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.submitter import find_submitter

_BEGINS_ANEW = "What an earlier attempt has left is taken down before the job begins anew"


async def left_behind(look: Look) -> bool:
    """Whether there is anything of an attempt: a name in the status, a submitter, a cluster of the job's own."""
    return bool(look.status.ray_cluster_name or find_submitter(look) is not None or await _strays(look))


async def begin_again_alone(look: Look) -> bool:
    """Whether the attempt has begun beside a stray; then all is taken down, and the job begins anew."""
    if not await _strays(look):
        return False
    await look.write(job_deployment_status=JobDeploymentStatus.RETRYING.value, message=_BEGINS_ANEW)
    return True


async def take_down_first(look: Look) -> bool:
    """Whether a job that is to begin has anything left of an attempt, which is on its way out from now on."""
    if not await left_behind(look):
        return False
    state = JobDeploymentStatus.SUSPENDING if look.job.spec.suspend else JobDeploymentStatus.RETRYING
    # As for a job that is resumed, its time is its own again.
    await look.write(
        job_deployment_status=state.value, reason=None, message=_BEGINS_ANEW, start_time=None, end_time=None
    )
    return True


async def name_stray(look: Look) -> bool:
    """Have the status name a stray, to be taken down; False where there is none.

    Not for a job that needs the cluster that its status names.
    """
    found = await _strays(look)
    if found:
        await look.write(ray_cluster_name=found[0].metadata.name)
    return bool(found)


async def delete_strays(look: Look) -> None:
    """Delete the strays of a job that does not wait for them; that it is refused is told, and keeps no job from its
    end.
    """
    await in_passing(look, "stray", _delete(look))


async def _delete(look: Look) -> None:
    found = await _strays(look, leaving=False)
    if found:
        await look.confirm()
    for one in found:
        await job_cluster.delete(look, one)


async def _strays(look: Look, *, leaving: bool = True) -> list[ObservedRayCluster]:
    """The strays as the API server has them, those that are `leaving` included."""
    meta, clusters = look.job.metadata, look.context.ray_clusters
    owned = clusters.owned_by(str(meta.namespace), str(meta.uid))
    seen = [one.metadata for one in owned if leaving or one.metadata.deletion_timestamp is None]
    names = sorted(one.name for one in seen if one.name != look.status.ray_cluster_name)
    found = [await clusters.read(meta.namespace, name) for name in names]
    return [one for one in found if one is not None and job_cluster.is_the_jobs(look, one)]
