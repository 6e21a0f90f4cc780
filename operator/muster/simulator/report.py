"""A cycle as a document: what `muster simulate -o json` prints.

The contract is in docs/simulate.md; whoever scripts against it relies on every name here.
"""

from __future__ import annotations

from typing import Any

from muster.engine.amounts import quantities
from muster.engine.reason_document import reason_document
from muster.engine.times import rfc3339
from muster.scheduler.cache import SchedulerCache
from muster.scheduler.inquiry import Inquiry
from muster.scheduler.job import JobInfo
from muster.scheduler.outcome import Outcome
from muster.scheduler.queue import QueueInfo
from muster.scheduler.resources import Resources
from muster.scheduler.specs import Condition, TaskStatus


def cycle_document(outcome: Outcome, cache: SchedulerCache, inquiry: Inquiry) -> dict[str, Any]:
    """What a cycle decided, and how the cluster's objects stand at its end."""
    return {
        "bindings": [{"pod": f"{each.namespace}/{each.pod}", "node": each.node} for each in outcome.bindings],
        "evictions": [
            {"pod": f"{each.namespace}/{each.pod}", "reason": each.reason, "by": each.by} for each in outcome.evictions
        ],
        "pipelined": [{"pod": f"{each.namespace}/{each.pod}", "node": each.node} for each in outcome.pipelined],
        "podGroups": {key: _pod_group(job, inquiry) for key, job in sorted(cache.jobs.items())},
        "queues": {name: _queue(queue) for name, queue in sorted(cache.queues.items()) if queue.spec is not None},
        "pods": _waiting_pods(cache),
    }


def _pod_group(job: JobInfo, inquiry: Inquiry) -> dict[str, Any]:
    """A PodGroup that pods name but that does not exist has no phase."""
    reason = inquiry.full_reason(job)
    return {
        "phase": job.phase.value if job.spec is not None else None,
        "conditions": [_condition(each) for each in job.conditions],
        "reason": reason_document(reason) if reason is not None else None,
    }


def _condition(condition: Condition) -> dict[str, Any]:
    document = {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": rfc3339(condition.last_transition) if condition.last_transition else "",
    }
    return {name: value for name, value in document.items() if value}


def _queue(queue: QueueInfo) -> dict[str, Any]:
    status = queue.published
    if status is None:
        return {"allocated": {}, "deserved": None, "share": None, "overused": None}
    document = {
        "allocated": quantities(status.allocated),
        "deserved": _quantities(status.deserved),
        "share": status.share,
        "overused": status.overused,
    }
    return document if status.problem is None else {**document, "problem": reason_document(status.problem)}


def _quantities(resources: Resources | None) -> dict[str, str] | None:
    return None if resources is None else quantities(resources)


def _waiting_pods(cache: SchedulerCache) -> dict[str, Any]:
    waiting = [
        task
        for task in cache.tasks.values()
        if task.status is TaskStatus.PENDING and task.spec.ours and task.job is not None
    ]
    found: dict[str, Any] = {}
    for task in sorted(waiting, key=lambda each: each.key):
        said = task.verdict
        condition = {"reason": said.reason, "message": said.message} if said is not None else None
        found[task.key] = {"status": "Pending", "podScheduled": condition}
    return found
