"""A suggestion in terms of what the owner of a RayJob or RayCluster edits: workers of a group, not members of a gang.

The fields to change stay those of the PodGroup, with `workers` (group to number) beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from muster.ray import labels
from muster.scheduler.job import JobInfo
from muster.scheduler.reasons import Reason
from muster.scheduler.resources import format_amount
from muster.scheduler.suggested import AtMost, Suggestion
from muster.scheduler.task import TaskInfo


def in_ray_terms(job: JobInfo, reason: Reason) -> Reason:
    """The reason with its suggestion so put, if the gang is one of Ray's."""
    suggestion = reason.suggestion
    if suggestion is None or all(task.role != labels.HEAD_GROUP for task in job.tasks.values()):
        return reason
    said = _fewer_workers(job, suggestion) or _smaller_pod(job, suggestion) or suggestion
    return replace(reason, suggestion=replace(said, at_most=_at_most(job, suggestion.at_most)))


def _fewer_workers(job: JobInfo, suggestion: Suggestion) -> Suggestion | None:
    fewer = _workers(job, suggestion.change)
    if not fewer:
        return None
    text = f"with {_in_words(job, fewer, instead=True)} it would be placed now"
    return Suggestion(text, {**suggestion.change, "workers": fewer})


def _at_most(job: JobInfo, most: AtMost | None) -> AtMost | None:
    fewer = _workers(job, most.change) if most is not None else None
    if most is None or not fewer:
        return most
    members, instead = (_in_words(job, fewer, instead=each) for each in (False, True))
    return replace(most, members=members, fewer=instead, change={**most.change, "workers": fewer})


def _workers(job: JobInfo, change: Mapping[str, Any]) -> dict[str, int] | None:
    """By group, how many workers the change leaves of those that lose some; None where that is not all it is about."""
    wanted = change.get("minTaskMember")
    if not wanted or job.spec is None:
        return None
    before = job.spec.min_task_member
    fewer = {group: number for group, number in wanted.items() if number != before.get(group)}
    if labels.HEAD_GROUP in fewer or sum(before.values()) != job.spec.min_member:
        return None
    return fewer


def _in_words(job: JobInfo, fewer: Mapping[str, int], *, instead: bool) -> str:
    before = job.spec.min_task_member if job.spec is not None else {}
    return " and ".join(
        f"{number} worker{'' if number == 1 else 's'} of group {group}"
        + (f" instead of {before.get(group)}" if instead else "")
        for group, number in sorted(fewer.items())
    )


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
