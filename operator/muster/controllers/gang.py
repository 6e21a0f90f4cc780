"""The PodGroup and the Queue of a gang, kept as its owner wants them.

The PodGroup is sized to what the owner's pods are or will be; released, it holds nothing (P7). Only its size is ours to
change: queue, priority and status belong to others once it exists. A Queue that a job names is created if it is missing
and the operator is allowed to; the job waits, with the scheduler's reason, where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from muster.api.queue import QueueState
from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.controllers.children import controlled_by
from muster.controllers.context import Context
from muster.kube.errors import AlreadyExists, Forbidden, Invalid
from muster.kube.objects import PodGroup, PodGroupSpec
from muster.ray.gang import desired_update, pod_group_name, queue, queue_name, released
from muster.ray.gang_membership import GangMembership
from muster.ray.labels import PRIORITY_CLASS, QUEUE_NAME

Owner = RayCluster | RayJob

_HOLDS_NOTHING: Final = {"spec": {"minMember": 0, "minTaskMember": None, "minResources": None}}

QUEUE_CLOSED = "QueueClosed"
"""Event and condition reason of a gang that its queue does not take."""


def membership(context: Context, owner: Owner) -> GangMembership | None:
    """How pods of this cluster or job become members of their gang; None where there are no gangs."""
    if not context.options.gangs:
        return None
    return GangMembership(
        pod_group_name(owner),
        scheduler_name=context.options.scheduler_name,
        gate=context.options.gate,
        queue=queue_name(owner),
        priority_class=owner.metadata.labels.get(PRIORITY_CLASS),
    )


async def ensure_pod_group(context: Context, owner: Owner, manifest: Mapping[str, Any]) -> PodGroup | None:
    """Create the owner's PodGroup, or give the one that is there the manifest's size.

    Raises NotOurs when one of that name belongs to somebody else.
    """
    if not context.options.gangs:
        return None
    found, created = await context.pod_groups.ensure(manifest, owner)
    if created:
        return found
    change = desired_update(_as_json(found), manifest)
    return found if change is None else await context.pod_groups.patch(found, change)


async def release_pod_group(context: Context, owner: Owner) -> None:
    """Have the owner's PodGroup hold nothing, if there is one and it is the owner's."""
    if not context.options.gangs:
        return
    meta = owner.metadata
    name = pod_group_name(owner)
    found = context.pod_groups.get(meta.namespace, name) or await context.pod_groups.read(meta.namespace, name)
    if found is None or not controlled_by(found.metadata, meta.uid):
        return
    change = released(_as_json(found))
    if found.spec == PodGroupSpec():  # what it holds can't be read; where it can't be written either that is told
        with suppress(Invalid):
            await context.pod_groups.patch(found, {**(change or {}), **_HOLDS_NOTHING})
    elif change is not None:
        await context.pod_groups.patch(found, change)


async def ensure_queue(context: Context, owner: Owner) -> None:
    """Create the Queue that the owner names, if it is missing and may be created."""
    name = queue_name(owner)
    if not context.options.gangs or name is None or context.queues.get(None, name) is not None:
        return
    if not context.options.create_queues:
        _say_missing(context, owner, name, "Muster is told not to create queues")
        return
    try:
        created = await context.queues.create(queue(name))
    except AlreadyExists:
        return
    except Forbidden as refusal:
        _say_missing(context, owner, name, f"Muster may not create it ({refusal.message})")
        return
    message = f"Created Queue {name}, which did not exist"
    context.say(owner, "Normal", "CreatedQueue", message, "Create", change=created.metadata.uid)


def closed_queue(context: Context, owner: Owner) -> str | None:
    """The complaint about a queue that takes no new gangs, naming the field that chose it; None for an open one."""
    name = queue_name(owner)
    found = context.queues.get(None, name) if name else None
    state = found.status.state if found is not None else None
    if state in (None, "", QueueState.OPEN):
        return None
    return (
        f'metadata.labels[{QUEUE_NAME}]: Queue "{name}" is {state} and takes no new gangs; '
        "open it, or name another queue"
    )


def _say_missing(context: Context, owner: Owner, name: str, why: str) -> None:
    message = f'metadata.labels[{QUEUE_NAME}]: Queue "{name}" does not exist, and {why}; create it'
    context.say(owner, "Warning", "QueueNotFound", message, "Create")


def _as_json(found: PodGroup) -> dict[str, Any]:
    """The parts of a PodGroup that are compared, as the API server's JSON has them."""
    spec = found.spec
    return {
        "metadata": {"annotations": found.metadata.annotations},
        "spec": {
            "minMember": spec.min_member,
            "minTaskMember": spec.min_task_member,
            "minResources": spec.min_resources,
        },
    }
