"""A RayJob whose spec has fields of the wrong types, stored through a schema that let them in.

It is refused as one whose spec can't work is, and looked at as if it had no such fields: whose cluster it runs on and
what there is to take down is told by its status and by owner references. What has been begun goes on: until the spec
can be read again nobody touches it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from functools import partial

from muster.api.rayjob import JobDeploymentStatus, RayJob
from muster.controllers.context import Context
from muster.controllers.primaries import Raw
from muster.controllers.primary import spec_problems
from muster.controllers.rayjob.look import Look, spec_field
from muster.controllers.rayjob.named_cluster import names_no_cluster
from muster.controllers.rayjob.stopped import refuse
from muster.controllers.runner import Requeue
from muster.kube.errors import Invalid

REFUSED_IN = (
    JobDeploymentStatus.NEW,
    JobDeploymentStatus.INITIALIZING,
    JobDeploymentStatus.SUSPENDED,
    JobDeploymentStatus.VALIDATION_FAILED,
)
"""States in which a spec that can't work stops the job. Later a bad edit changes nothing that has been begun."""

logger = logging.getLogger(__name__)


async def refuse_malformed(context: Context, raw: Raw) -> Requeue | None:
    """Say in the status what is wrong, unless something has been begun."""
    problems = spec_problems(RayJob, raw)
    if not problems:
        return None
    read = partial(_without, {spec_field(problem.path) for problem in problems})
    look = Look(context, raw, read(raw), read)
    look.figures()
    if look.state not in REFUSED_IN:
        return None
    try:
        return None if await names_no_cluster(look) else await refuse(look, problems)
    except Invalid as refusal:  # an API server that judges the whole object at each write of its status
        meta = raw["metadata"]
        logger.warning("the status of RayJob %s/%s can't be written: %s", meta["namespace"], meta["name"], refusal)
        return None


def _without(faulty: Collection[str], raw: Raw) -> RayJob:
    spec = raw.get("spec")
    kept = {field: value for field, value in spec.items() if field not in faulty} if isinstance(spec, Mapping) else {}
    return RayJob.parse({**raw, "spec": kept})
