"""Rooms that companions had before, and who gets them.

The real pod of a companion goes where room was held for it. When it ends that room is held for the next one, and after
a restart the gang that runs holds again what its PodGroup notes. Both happen at the start of a cycle, before anybody
else is placed, and as for any pod: only where the node and the queue have room by now. A note can be written by anybody
who may write the PodGroup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler import companions
from muster.scheduler.placement import fits
from muster.scheduler.specs import TaskStatus

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo


def take_former_places(session: Session, job: JobInfo) -> None:
    """Give companions without room the places that they had, if the gang has pods on nodes."""
    places, job.former_places = job.former_places, {}
    for role, name in sorted(places.items()):
        task = _without_room(job, role)
        if task is not None and job.ready:
            _take(session, task, name)


def take_held_places(session: Session, job: JobInfo) -> None:
    """Give the real pods of companions the places that were held for them."""
    for role, placeholder in sorted(job.placeholders.items()):
        pods = [task for task in companions.live_pods(job, role) if task.schedulable]
        if placeholder.node is None or not pods:
            continue
        name = placeholder.node
        companions.drop(session.cache, job, role)
        _take(session, min(pods, key=lambda each: each.order), name)


def _without_room(job: JobInfo, role: str) -> TaskInfo | None:
    """The companion's pod, or who stands for it, if it has no node."""
    pods = companions.live_pods(job, role)
    if any(pod.node is not None for pod in pods):
        return None
    placeholder = job.placeholders.get(role)
    waiting = [pod for pod in pods if pod.schedulable] or [task for task in [placeholder] if task is not None]
    first = min(waiting, key=lambda each: each.order, default=None)
    return first if first is not None and first.status is TaskStatus.PENDING else None


def _take(session: Session, task: TaskInfo, name: str) -> None:
    """Place the task on the node, if that is possible now."""
    node, job = session.cache.nodes.get(name), task.job
    if node is None or node.spec is None or job is None:
        return
    if session.framework.judge.objection(task.shape, node) is not None or not fits(task.shape, node.idle):
        return
    if session.over_capability(job.queue, session.charge_of(task)) is None:
        statement = session.statement()
        statement.allocate(task, node)
        statement.commit()
