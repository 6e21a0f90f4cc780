"""What keeps a gang from being placed before any node is looked at.

Each function gives the first obstacle in the order of reason classes, or None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from heapq import nsmallest
from typing import TYPE_CHECKING

from muster.scheduler.job import JobInfo
from muster.scheduler.plugins.gang import not_enough_pods
from muster.scheduler.queue import limits
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.resources import CPU, MEMORY, Resources, total
from muster.scheduler.specs import TaskStatus
from muster.scheduler.task import TaskInfo

if TYPE_CHECKING:
    from muster.scheduler.session import Session


def obstacle_to_admission(job: JobInfo) -> Reason | None:
    """A PodGroup or a queue that can't be used."""
    return _unusable(job) or job.queue.obstacle


def _unusable(job: JobInfo) -> Reason | None:
    """A PodGroup that is missing or wrong."""
    if job.spec is None:
        return Reason(Code.POD_GROUP_MISSING, detail=job.key)
    return Reason(Code.INVALID_POD_GROUP, detail=job.spec.problem) if job.spec.problem else None


def obstacle_to_placement(session: Session, job: JobInfo) -> Reason | None:
    """Also: pods that others hold back, or that do not exist; and whatever a plugin has against the gang."""
    return (
        _unusable(job)
        or _gated(job)
        or job.queue.obstacle
        or not_enough_pods(job)
        or session.framework.job_valid(session, job)
    )


def _gated(job: JobInfo) -> Reason | None:
    """There would be enough pods, of every role, but for those that are held back."""
    held = [task for task in held_back(job) if not job.is_companion(task)]
    if not held:
        return None
    names = held_by(held)
    if job.valid >= job.min_member > job.valid - len(held):
        return Reason(Code.PODS_GATED, have=job.valid - len(held), need=job.min_member, detail=names)
    held_of = Counter(task.role for task in held)
    for role, least in job.role_minimums():
        there = job.valid_of(role)
        if there >= least > there - held_of[role]:
            return Reason(Code.PODS_GATED, have=there - held_of[role], need=least, role=role, detail=names)
    return None


def held_back(job: JobInfo) -> list[TaskInfo]:
    """Pending members that somebody else has gated, or handed to the default scheduler."""
    if not job.gated.scalars:
        return []
    return sorted((task for task in job.pending.values() if task.held_back), key=lambda task: task.order)


def all_held_back(job: JobInfo) -> Reason | None:
    """The gang has its minimum, and all who wait beside it are held back."""
    held = held_back(job)
    if not held or len(held) < len(job.pending):
        return None
    members = [task for task in held if not job.is_companion(task)]
    if not members:
        return Reason(Code.PODS_GATED, have=0, need=len(held), detail=held_by(held))
    return Reason(Code.PODS_GATED, have=job.valid - len(members), need=job.valid, detail=held_by(members))


def held_by(held: list[TaskInfo]) -> str:
    """What holds these back, in words: first the gates, which somebody can take away."""
    gated = [task for task in held if task.spec.gated]
    if gated:
        return f"{_names(gated)} {'is' if len(gated) == 1 else 'are'} held by a scheduling gate"
    verb = "was" if len(held) == 1 else "were"
    return f"{_names(held)} {verb} handed to default-scheduler, and not by Muster's decision"


def _names(tasks: list[TaskInfo]) -> str:
    return tasks[0].spec.name if len(tasks) == 1 else f"{len(tasks)} pods"


def impossible(session: Session, job: JobInfo) -> Reason | None:
    """Why the gang can never be placed in this cluster: larger than its queue, the cluster, or every node.

    Of a gang that is ready already, why its extra members can't.
    """
    need = None if job.is_ready() else least_need(job)
    if need is not None:
        devices = _least_devices(session, job)
        reason = larger_than_queue(session, job, need.plus(devices)) or _larger_than_cluster(session, job, need)
        if reason is not None:
            return replace(reason, with_companions=bool(job.companions_pending()))
    return _larger_than_every_node(session, job)


def least_need(job: JobInfo) -> Resources | None:
    """What the gang and its companions need at least, None when it can't be told (pods missing, no minResources)."""
    pods = _least_members(job) if job.min_member and job.valid >= job.min_member else None
    if pods is not None:
        pods = total([pods, *(companion.request for companion in job.companions_pending())])
    minimum = job.min_resources
    if pods is None or minimum is None:
        return pods if pods is not None else minimum
    return pods.maximum(minimum)


def _least_members(job: JobInfo) -> Resources:
    """What its pods ask for; of more than the minimum what the smallest do, one dimension at a time."""
    # Who leaves is no part of the gang any more: his replacement is.
    members = (task for task in job.tasks.values() if not job.is_companion(task))
    requests = [task.request for task in members if task.status.charged or task.status is TaskStatus.PENDING]
    spare = job.valid - job.min_member
    if spare == 0:
        return total(requests)
    count = max(0, len(requests) - spare)
    names = {name for request in requests for name in request.dimensions()}
    least = {name: sum(nsmallest(count, (each.get(name) for each in requests))) for name in names}
    return Resources(least.pop(CPU, 0), least.pop(MEMORY, 0), least)


def _least_devices(session: Session, job: JobInfo) -> Resources:
    """The devices that the whole gang claims, where those count against its queue and it can be told."""
    devices = session.cache.devices
    if not devices.counted or job.valid != job.min_member:
        return Resources()
    return _devices_of(
        session, (task for task in job.tasks.values() if task.status.charged or task.status is TaskStatus.PENDING)
    )


def _devices_of(session: Session, tasks: Iterable[TaskInfo]) -> Resources:
    claims = {key for task in tasks if task.shape.devices is not None for key in task.shape.devices.claims}
    return total(session.cache.devices.weigh(key) for key in claims)


def need_with(session: Session, job: JobInfo, waiting: Iterable[TaskInfo]) -> Resources:
    """What the gang needs of its queue with these of its members that wait, its companions and its minResources."""
    members = [*(task for task in job.tasks.values() if task.status.charged), *waiting]
    pods = total(task.request for task in [*members, *job.companions_pending()])
    need = pods if job.min_resources is None else pods.maximum(job.min_resources)
    return need.plus(_devices_of(session, members)) if session.cache.devices.counted else need


def larger_than_queue(session: Session, job: JobInfo, need: Resources) -> Reason | None:
    """The first cap, from the queue upwards, that is smaller than the need."""
    too_small = [
        (dimension, limit, queue.name)
        for queue in session.capped_levels(job.queue)
        for dimension, limit in limits(queue.capability or Resources())
        if need.get(dimension) > limit
    ]
    if not too_small:
        return None
    dimension, limit, name = too_small[0]
    return Reason(Code.LARGER_THAN_QUEUE, resource=dimension, requested=need.get(dimension), limit=limit, queue=name)


def _larger_than_cluster(session: Session, job: JobInfo, need: Resources) -> Reason | None:
    whole = session.cache.total
    if not session.cache.index.makes:
        return None
    for dimension in (CPU, MEMORY, *sorted(need.scalars)):
        if need.get(dimension) > whole.get(dimension):
            usable = session.usable({task.shape.id: task.shape for task in job.pending.values()}, dimension)
            return Reason(
                Code.LARGER_THAN_CLUSTER,
                resource=dimension,
                requested=need.get(dimension),
                limit=usable,
                detail="that its pods may use" if usable < whole.get(dimension) else "",
                wakes=(Wake.CLUSTER, Wake.NODES),
                more_nodes_help=True,
            )
    return None


def _larger_than_every_node(session: Session, job: JobInfo) -> Reason | None:
    """Too few members, or none of those that wait, would fit on an empty node of this cluster, or a companion, for
    which the gang needs room from the start, would not.
    """
    if not session.cache.index.makes:
        return None
    task = _too_large_companion(session, job) or _too_large_member(session, job)
    if task is None:
        return None
    makes = [make.sample.allocatable for make in session.cache.index.makes.values()]
    needs = task.shape.init_request
    largest = {name: max(each.get(name) for each in makes) for name in needs.dimensions()}
    above = [name for name in needs.dimensions() if needs.get(name) > largest[name]]
    dimension = above[0] if above else None
    return Reason(
        Code.LARGER_THAN_EVERY_NODE,
        resource=dimension,
        requested=needs.get(dimension) if dimension else None,
        limit=largest[dimension] if dimension else None,
        member=task.spec.name,
        wakes=(Wake.NODES,),
        more_nodes_help=True,
    )


def _too_large_member(session: Session, job: JobInfo) -> TaskInfo | None:
    too_large = [task for task in job.pending.values() if not session.fits_an_empty_node(task.shape)]
    enough = job.valid - len(too_large) >= max(1, job.min_member)
    if not too_large or (enough and len(too_large) < len(job.pending)):
        return None
    return min(too_large, key=lambda each: each.order)


def _too_large_companion(session: Session, job: JobInfo) -> TaskInfo | None:
    if job.is_ready():
        return None
    return next((task for task in job.companions_pending() if not session.fits_an_empty_node(task.shape)), None)
