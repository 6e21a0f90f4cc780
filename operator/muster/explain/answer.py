"""The answer as a document: what `muster explain -o json` prints, and from which the text for people is made.

`source` is `scheduler` when it was worked out now, `status` when it is what the scheduler last wrote; then `age`
(seconds) says how old that is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from muster.engine.amounts import quantities
from muster.engine.delegation import pinned_node
from muster.engine.reason_document import reason_document
from muster.engine.times import rfc3339
from muster.explain.ray_terms import in_ray_terms
from muster.explain.refused_pods import find_refusal, with_refusal
from muster.explain.startup import not_working
from muster.explain.target import Kind, RayState, Target, TargetError, group_of, group_of_pod
from muster.kube.objects import Pod
from muster.scheduler.inquiry import Inquiry
from muster.scheduler.job import JobInfo
from muster.scheduler.queue import QueueInfo, limits
from muster.scheduler.session import Session
from muster.scheduler.specs import TaskStatus
from muster.scheduler.status import queue_status
from muster.simulator.simulation import Simulation


def explain(
    simulation: Simulation, target: Target, ray: RayState | None, clusters: Iterable[RayState] = ()
) -> dict[str, Any]:
    """Run a cycle, and say what comes of it for the target; `clusters` are the RayClusters of its namespace.

    Raises TargetError where nothing is known of it.
    """
    pods = list(simulation.model.pods.values())
    key = group_of(target, pods, ray)
    running = {pod.metadata.uid for pod in pods if pod.spec.node_name is not None or pinned_node(pod) is not None}
    simulation.cycle()
    job = simulation.model.cache.jobs.get(key)
    if job is None and ray is None:
        raise TargetError(_nothing_known(target, key, pods))
    document: dict[str, Any] = {
        "target": str(target),
        "podGroup": key,
        "source": "scheduler",
        "asOf": rfc3339(simulation.now),
        "ray": _ray(ray),
    }
    if job is not None:
        document |= _gang(simulation.inquiry(), job, running)
        if document["reason"] is not None:
            document["reason"] = with_refusal(document["reason"], find_refusal(key, clusters, pods, ray))
        members = [pod for pod in pods if pod.metadata.uid in running and group_of_pod(pod) == key]
        document["notReady"] = _starting(members)
    return {name: value for name, value in document.items() if value is not None}


def _nothing_known(target: Target, key: str, pods: Iterable[Pod]) -> str:
    if key == target.key:
        return f"{target} does not exist"
    pod = next((each for each in pods if target.kind is Kind.POD and each.key == target.key), None)
    if pod is None:
        return f"{target} has no PodGroup {key}"
    return f"{target} is in no gang of this scheduler: its schedulerName is {pod.spec.scheduler_name!r}"


def _gang(inquiry: Inquiry, job: JobInfo, running: Collection[str]) -> dict[str, Any]:
    reason = inquiry.full_reason(job)
    reason = in_ray_terms(job, reason) if reason is not None else None
    members = inquiry.members(job) if reason is not None and job.pending and not job.is_ready() else None
    return {
        "phase": job.phase.value if job.spec is not None else None,
        "reason": reason_document(reason) if reason is not None else None,
        "queues": [_queue(inquiry.session, queue) for queue in (job.queue, *job.queue.above)],
        "members": None
        if members is None
        else {"fitting": members.fitting, "needed": members.needed, "failing": dict(members.failing)},
        "wouldBind": _would_bind(job, running) or None,
    }


def _would_bind(job: JobInfo, running: Collection[str]) -> dict[str, str]:
    """Who has been given a node just now: the scheduler of the cluster would do so too."""
    placed = (
        task
        for task in job.tasks.values()
        if task.status is TaskStatus.BINDING and task.node is not None and task.uid not in running
    )
    return {task.key: task.node or "" for task in sorted(placed, key=lambda each: each.order)}


def _queue(session: Session, queue: QueueInfo) -> dict[str, Any]:
    """A queue as `muster simulate` shows it, and its limits: what is not limited, or guaranteed, is not named."""
    spec, status = queue.spec, queue_status(session, queue)
    found = {"allocated": quantities(status.allocated)}
    if status.deserved is not None:
        found["deserved"] = quantities(status.deserved)
    for name, amount in (("capability", queue.capability), ("guarantee", spec.guarantee if spec is not None else None)):
        named = {key: quantities(amount)[key] for key, _ in limits(amount)} if amount is not None else {}
        if named:
            found[name] = named
    state = spec.state.value if spec is not None else "Missing"
    return {"name": queue.name, "state": state, **found}


def _starting(members: Iterable[Pod]) -> list[dict[str, str]] | None:
    found = not_working(members)
    return [{"pod": each.pod, "node": each.node, "waitsFor": each.waits_for} for each in found] or None


def _ray(ray: RayState | None) -> dict[str, Any] | None:
    if ray is None:
        return None
    names = ("jobDeploymentStatus", "jobStatus", "state", "reason", "message")
    said = {name: ray.status[name] for name in names if isinstance(ray.status.get(name), str) and ray.status[name]}
    return {"suspended": ray.suspended, **said}
