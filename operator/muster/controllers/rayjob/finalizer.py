"""The finalizer of a RayJob: held only while a Ray job may run, so that a deletion can stop it first.

A deleted RayJob tries once to stop its Ray job and then lets go, whatever came of it: the pods go with it. On a cluster
that others made and that stays it tries for half a minute. Should the operator be gone for
good, `kubectl patch rayjob NAME --type=merge -p '{"metadata":{"finalizers":null}}'` frees the object by hand.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from muster.api.rayjob import RayJob
from muster.controllers.clock import seconds_of
from muster.controllers.context import Context
from muster.controllers.primaries import Raw
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.stopping import Stop, say_not_stopped, stop_ray_job
from muster.controllers.rayjob.submitter import delete_submitter
from muster.controllers.runner import Requeue
from muster.kube.errors import NotFound
from muster.kube.resource import RAYJOBS
from muster.ray.labels import RAYJOB_FINALIZER
from muster.ray.selection import runs_elsewhere

STOP_SECONDS = 30.0
"""How long after its deletion a RayJob is kept for a dashboard that does not answer."""

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


async def _try_to_stop(look: Look) -> bool:
    """Once, and whatever goes wrong: an object that can't be deleted is worse than a job that its pods' end stops.

    Whether it is to be tried again.
    """
    try:
        if runs_elsewhere(look.job):  # else its next pod might submit what has just been stopped
            await delete_submitter(look)
        result = await stop_ray_job(look)
    except Exception:
        meta = look.job.metadata
        logger.exception("RayJob %s/%s is deleted without its Ray job being stopped", meta.namespace, meta.name)
        return False
    if result is not Stop.UNKNOWN or not runs_elsewhere(look.job):
        return False
    deleted_at = seconds_of(look.raw["metadata"].get("deletionTimestamp")) or 0.0
    if look.now < deleted_at + STOP_SECONDS:
        return True
    say_not_stopped(look, STOP_SECONDS)
    return False


async def let_go(context: Context, raw: Raw, job: RayJob | None) -> Requeue | None:
    """The RayJob is being deleted: stop its Ray job if one may run, and drop the finalizer in any case.

    `job` is None for an object that can't be understood; it is let go too. Everything that was made for the RayJob
    goes with it by owner references.
    """
    finalizers = raw["metadata"].get("finalizers") or []
    if RAYJOB_FINALIZER not in finalizers:
        return None
    if job is not None:
        look = Look(context, raw, job)
        # Whatever the state is: a deadline or a suspension may not have stopped it yet.
        if not look.ray_status.terminal and await _try_to_stop(look):
            return Requeue(context.options.poll_interval)
    rest = [one for one in finalizers if one != RAYJOB_FINALIZER]
    with suppress(NotFound):
        await context.primaries[RAYJOBS].patch(raw, {"metadata": {"finalizers": rest or None}})
    return None
