"""A suggestion in terms of what the owner of a RayJob or RayCluster edits: workers of a group, not members of a gang.

The fields to change stay those of the PodGroup, with `workers` (group to number) beside them.
"""

from __future__ import annotations

from dataclasses import replace

from muster.ray import labels
from muster.scheduler.job import JobInfo
from muster.scheduler.reasons import Reason, Suggestion
from muster.scheduler.resources import format_amount
from muster.scheduler.task import TaskInfo


def in_ray_terms(job: JobInfo, reason: Reason) -> Reason:
    """The reason with its suggestion so put, if the gang is one of Ray's."""
    suggestion = reason.suggestion
    if suggestion is None or all(task.role != labels.HEAD_GROUP for task in job.tasks.values()):
        return reason
    return replace(reason, suggestion=_fewer_workers(job, suggestion) or _smaller_pod(job, suggestion) or suggestion)


def _fewer_workers(job: JobInfo, suggestion: Suggestion) -> Suggestion | None:
    wanted = suggestion.change.get("minTaskMember")
    if not wanted or job.spec is None:
        return None
    before = job.spec.min_task_member
    fewer = {group: number for group, number in wanted.items() if number != before.get(group)}
    if not fewer or labels.HEAD_GROUP in fewer or sum(before.values()) != job.spec.min_member:
        return None
    groups = " and ".join(
        f"{number} worker{'' if number == 1 else 's'} of group {group} instead of {before.get(group)}"
        for group, number in sorted(fewer.items())
    )
    return Suggestion(f"with {groups} it would be placed now", {**suggestion.change, "workers": fewer})


def _smaller_pod(job: JobInfo, suggestion: Suggestion) -> Suggestion | None:
    name, requests = suggestion.change.get("member"), suggestion.change.get("requests")
    member = next((task for task in job.tasks.values() if task.spec.name == name), None)
    if member is None or not requests:
        return None
    less = ", ".join(
        f"{resource} {amount} instead of {_asked(member, resource)}" for resource, amount in requests.items()
    )
    return Suggestion(f"if {_who(member)} asked for {less} it would be placed now", suggestion.change)


def _who(member: TaskInfo) -> str:
    known = {labels.HEAD_GROUP: "the head", labels.SUBMITTER_GROUP: "the submitter"}
    return known.get(member.role, f"each worker of group {member.role}")


def _asked(member: TaskInfo, resource: str) -> str:
    return format_amount(resource, member.shape.init_request.get(resource))
