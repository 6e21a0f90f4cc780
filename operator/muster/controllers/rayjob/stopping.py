"""Asking Ray to stop the job."""

from __future__ import annotations

import logging
from enum import Enum

from muster.api.rayjob import JobStatus
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.look import Look
from muster.ray.jobs_api import JobNotFound, RayApiError

logger = logging.getLogger(__name__)


class Stop(Enum):
    """What came of asking Ray to stop a job."""

    GONE = "gone"
    """No cluster, or Ray does not know the job: nothing runs."""
    STOPPING = "stopping"
    """Ray has been asked and will do it."""
    UNKNOWN = "unknown"
    """No answer of use."""


def say_not_stopped(look: Look, seconds: float) -> str:
    """Tell that the job may go on where its cluster stays, and what can be done; return the words."""
    job, cluster = look.status.job_id, look.status.ray_cluster_name
    message = (
        f"Ray job {job} may still run on RayCluster {cluster}: that it has ended was not confirmed for "
        f"{seconds:.0f} s. When the dashboard answers stop the job there: ray job stop {job}"
    )
    look.say("Warning", "RayJobNotStopped", message, "Stop")
    return message


async def stop_ray_job(look: Look) -> Stop | JobStatus:
    """Ask Ray once to stop the job; the job's final status when it has one already. Never raises for Ray's sake."""
    cluster = await job_cluster.find(look)
    if cluster is None or not job_cluster.serves(look, cluster) or not look.status.job_id:
        return Stop.GONE
    try:
        async with job_cluster.asking(look, job_cluster.model(look, cluster)) as ray:
            info = await ray.get(look.status.job_id)
            if info.status.terminal:
                return info.status
            await ray.stop(look.status.job_id)
            return Stop.STOPPING
    except JobNotFound:
        return Stop.GONE
    except (RayApiError, ValueError) as error:  # of a spec that has become of no use there is no dashboard to ask
        logger.info("RayJob %s/%s: not stopped: %s", look.job.metadata.namespace, look.job.metadata.name, error)
        return Stop.UNKNOWN
    except Exception:  # of whatever kind: what the attempt holds is given back all the same
        logger.exception("RayJob %s/%s: not stopped", look.job.metadata.namespace, look.job.metadata.name)
        return Stop.UNKNOWN
