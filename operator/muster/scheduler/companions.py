"""Room for the pods that a gang will need later.

A RayJob's submitter is created when its cluster is ready, and must then not be starved by its own gang or by whoever
waits. For each companion of a PodGroup that has no live pod the job holds a placeholder: a task that is charged like
a pod and placed together with the gang. The real pod takes its place when it appears (`companion_places`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.specs import Companion, PodGroupSpec, TaskSpec, TaskStatus
from muster.scheduler.task import TaskInfo

if TYPE_CHECKING:
    from muster.scheduler.accounts import Accounts
    from muster.scheduler.job import JobInfo


def reconcile(cache: Accounts, job: JobInfo) -> None:
    """Make the job's placeholders what they should be. A new one has no room yet."""
    if not job.placeholders and not job.companion_roles:
        return
    spec = job.spec if job.min_member > 0 else None
    wanted = {each.role: each for each in spec.companions} if spec is not None else {}
    for role, placeholder in list(job.placeholders.items()):
        companion = wanted.get(role)
        if companion is None or _taken(job, placeholder) or not _is_of(placeholder, companion):
            drop(cache, job, role)
    for role, companion in wanted.items():
        if spec is not None and role not in job.placeholders and not live_pods(job, role):
            _add(cache, job, spec, companion)


def drop(cache: Accounts, job: JobInfo, role: str) -> None:
    """A placeholder is needed no more: its room is for others."""
    placeholder = job.placeholders[role]
    vacate(cache, placeholder)
    cache.give_room_up(placeholder)
    job.account(placeholder, -1)
    del job.placeholders[role]
    job.shape_key = None
    cache.dismiss(placeholder)
    cache.unsettle(job)
    cache.relief.queues.add(job.queue.name)


def vacate(cache: Accounts, placeholder: TaskInfo) -> None:
    """Give a placeholder's room back; it waits for another."""
    if placeholder.node is not None:
        cache.free(placeholder)
        cache.move(placeholder, TaskStatus.PENDING, None)


def live_pods(job: JobInfo, role: str) -> list[TaskInfo]:
    """The role's real pods that are not at their end."""
    return [task for task in job.tasks.values() if task.role == role and not task.status.finished]


def _taken(job: JobInfo, placeholder: TaskInfo) -> bool:
    """Whether a real pod makes the placeholder needless: one that has a node, or any when no room is held."""
    pods = live_pods(job, placeholder.role)
    return any(pod.node is not None for pod in pods) or (bool(pods) and placeholder.node is None)


def _is_of(placeholder: TaskInfo, companion: Companion) -> bool:
    spec = placeholder.spec
    return (
        spec.request == companion.request
        and spec.init_request == companion.init_request
        and spec.scheduling == companion.scheduling
    )


def _add(cache: Accounts, job: JobInfo, group: PodGroupSpec, companion: Companion) -> None:
    spec = TaskSpec(
        uid=f"companion/{job.key}/{companion.role}",
        namespace=group.namespace,
        name=f"{group.name} ({companion.role})",
        job=job.key,
        role=companion.role,
        request=companion.request,
        init_request=companion.init_request,
        scheduling=companion.scheduling,
        creation=group.creation,
    )
    placeholder = cache.admit(spec, companion=True)
    placeholder.job = job
    if cache.outlooks:
        cache.shape(placeholder)
    job.placeholders[companion.role] = placeholder
    job.shape_key = None
    job.account(placeholder, 1)
    cache.unsettle(job)
