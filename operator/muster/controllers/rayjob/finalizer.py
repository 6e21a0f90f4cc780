"""The finalizer of a RayJob: held only while a Ray job may run, so that a deletion can stop it first.

A deleted RayJob tries once to stop its Ray job and then lets go, whatever came of it. Should the operator be gone for
good, `kubectl patch rayjob NAME --type=merge -p '{"metadata":{"finalizers":null}}'` frees the object by hand.
"""

from __future__ import annotations

import logging

from muster.api.rayjob import JobDeploymentStatus, RayJob
from muster.controllers.context import Context
from muster.controllers.primary import Raw
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.stopping import stop_ray_job
from muster.kube.errors import NotFound
from muster.kube.resource import RAYJOBS
from muster.ray.labels import RAYJOB_FINALIZER

logger = logging.getLogger(__name__)


async def hold_finalizer(look: Look) -> None:
    """A Ray job may run from now on."""
    finalizers = look.job.metadata.finalizers or []
    if RAYJOB_FINALIZER not in finalizers:
        await look.patch_metadata({"finalizers": [*finalizers, RAYJOB_FINALIZER]})


def holds_finalizer(look: Look) -> bool:
    """Whether a Ray job of this RayJob may still run."""
    return RAYJOB_FINALIZER in (look.job.metadata.finalizers or [])


async def drop_finalizer(look: Look) -> None:
    """No Ray job of this RayJob runs any more."""
    if holds_finalizer(look):
        rest = [one for one in look.job.metadata.finalizers or [] if one != RAYJOB_FINALIZER]
        await look.patch_metadata({"finalizers": rest or None})


async def _try_to_stop(look: Look) -> None:
    """Once, and whatever goes wrong: an object that can't be deleted is worse than a job that its pods' end stops."""
    try:
        await stop_ray_job(look)
    except Exception:
        meta = look.job.metadata
        logger.exception("RayJob %s/%s is deleted without its Ray job being stopped", meta.namespace, meta.name)


async def let_go(context: Context, raw: Raw, job: RayJob | None) -> None:
    """The RayJob is being deleted: stop its Ray job if one may run (one try), and drop the finalizer in any case.

    `job` is None for an object that can't be understood; it is let go too. Everything that was made for the RayJob
    goes with it by owner references.
    """
    finalizers = raw["metadata"].get("finalizers") or []
    if RAYJOB_FINALIZER not in finalizers:
        return
    if job is not None:
        look = Look(context, raw, job)
        if look.state == JobDeploymentStatus.RUNNING and not look.ray_status.terminal:
            await _try_to_stop(look)
    rest = [one for one in finalizers if one != RAYJOB_FINALIZER]
    meta = raw["metadata"]
    body = {"metadata": {"finalizers": rest or None, "resourceVersion": meta["resourceVersion"]}}
    try:
        await context.client.patch(RAYJOBS, meta["namespace"], meta["name"], body)
    except NotFound:
        return
