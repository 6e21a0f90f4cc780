"""The scheduler's accounts, worked out again from the tasks alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muster.scheduler.cache import SchedulerCache
from muster.scheduler.hierarchy import sum_up_root
from muster.scheduler.job import JobInfo
from muster.scheduler.queue import Sums
from muster.scheduler.resources import Resources, total
from muster.scheduler.specs import TaskStatus
from muster.scheduler.task import TaskInfo
from tests.scheduler.audit_neighbours import audit_neighbours, neighbours_snapshot


def all_tasks(cache: SchedulerCache) -> list[TaskInfo]:
    placeholders = [task for job in cache.jobs.values() for task in job.placeholders.values()]
    return [*cache.tasks.values(), *placeholders]


def requests(tasks: Iterable[TaskInfo]) -> Resources:
    return total(task.request for task in tasks)


def claims_of(tasks: Iterable[TaskInfo]) -> set[str]:
    """The claims to devices of any of the tasks."""
    return {key for task in tasks if task.shape.devices is not None for key in task.shape.devices.claims}


def weight(cache: SchedulerCache, claims: set[str]) -> Resources:
    return total(cache.devices.weigh(key) for key in claims)


def audit(cache: SchedulerCache) -> None:
    """Fail where an incremental account differs from the recomputed one."""
    cache.settle()
    _audit_nodes(cache)
    for job in cache.jobs.values():
        _audit_job(job)
    _audit_queues(cache)
    _audit_index(cache)
    _audit_volumes(cache)
    audit_neighbours(cache, all_tasks(cache))


def _audit_nodes(cache: SchedulerCache) -> None:
    tasks = all_tasks(cache)
    for name, node in cache.nodes.items():
        here = [task for task in tasks if task.node == name and not task.status.finished]
        assert node.used == requests(task for task in here if task.status.holds), name
        assert node.releasing == requests(task for task in here if task.status is TaskStatus.RELEASING), name
        assert node.pipelined == requests(task for task in here if task.status is TaskStatus.PIPELINED), name
        assumed = [task.spec.scheduling.assumed for task in here if task.status.holds]
        assert node.assumed == (sum(cpu for cpu, _ in assumed), sum(memory for _, memory in assumed)), name
        assert set(node.tasks) == {task.uid for task in here}, name
        assert node.spec is not None or node.tasks, name
    assert not any(uid.startswith("hold/") for node in cache.nodes.values() for uid in node.tasks)
    known = [node for node in cache.nodes.values() if node.spec is not None]
    assert cache.total == total(node.allocatable for node in known)
    assert cache.used == total(node.used for node in known)


def _audit_job(job: JobInfo) -> None:
    members = [task for task in job.tasks.values() if not job.is_companion(task)]
    for status in TaskStatus:
        assert job.count(status) == sum(task.status is status for task in members), (job.key, status)
    for role, counts in job.role_counts.items():
        expected = [sum(t.role == role and t.status is status for t in members) for status in TaskStatus]
        assert counts == expected, (job.key, role)
    tasks = list(job.all_tasks())
    pending = [task for task in tasks if task.status is TaskStatus.PENDING]
    assert set(job.pending) == {task.uid for task in pending if not task.companion}, job.key
    assert job.allocated == requests(task for task in tasks if task.status.charged), job.key
    assert job.requested == requests(job.tasks.values()), job.key
    assert job.asked == requests(task for task in pending if task.spec.ours and not task.spec.gated), job.key
    assert job.gated == requests(task for task in pending if task.spec.gated), job.key
    assert all(task.job is job for task in tasks), job.key


def _audit_queues(cache: SchedulerCache) -> None:
    for name, queue in cache.queues.items():
        jobs = [job for job in cache.jobs.values() if job.queue is queue]
        tasks = [task for job in jobs for task in job.all_tasks()]
        leaving = [t for t in tasks if t.status is TaskStatus.RELEASING and t.node is not None]
        assert set(queue.jobs) == {job.key for job in jobs}, name
        charged = [task for task in tasks if task.status.charged]
        used = claims_of(charged)
        assert queue.allocated == requests(charged).plus(weight(cache, used)), name
        assert queue.releasing == requests(leaving).plus(weight(cache, claims_of(leaving) - used)), name
        assert queue.pending == total(job.compute_contribution().wanted for job in jobs), name
        assert queue.inqueue == total(job.compute_contribution().inqueue for job in jobs), name
        assert queue.elastic == total(job.compute_contribution().elastic for job in jobs), name
    sum_up_root(cache.queues)
    for name, queue in cache.queues.items():
        within = [each for each in cache.queues.values() if each is queue or queue in each.above]
        sums = Sums()
        for each in within:
            sums.add(each.own_sums())
        assert queue.subtree.keys() == sums.keys(), name
    grouped = [job for job in cache.jobs.values() if job.queue.name]
    assert cache.promised == total(job.compute_contribution().promised for job in grouped)


def _audit_index(cache: SchedulerCache) -> None:
    placed = {name: bucket for bucket in cache.index.filled_buckets() for name in bucket.members}
    known = {name: node for name, node in cache.nodes.items() if node.spec is not None}
    assert set(placed) == set(known)
    for name, node in known.items():
        bucket = placed[name]
        assert node.bucket is bucket
        assert bucket.idle == node.idle, name
        assert bucket.future_idle == node.future_idle, name
        assert name in bucket.make.nodes, name
        assert bucket.first() == min(bucket.members)


def _audit_volumes(cache: SchedulerCache) -> None:
    """Every volume is promised to one claim, and every promise is one to the pods that have a place."""
    tasks = {task.uid: task for task in all_tasks(cache)}
    promised = [promise.volume for _, promise in cache.storage.promises.items()]
    assert len(promised) == len(set(promised))
    for claim, promise in cache.storage.promises.items():
        assert cache.storage.is_late(claim)
        assert cache.storage.promises.claimant(promise.volume) == claim
        assert promise.asked or promise.nodes
        for uid, node in promise.nodes.items():
            assert tasks[uid].node == node
            assert claim in tasks[uid].spec.scheduling.claims


def snapshot(cache: SchedulerCache) -> dict[str, Any]:
    """Everything a decision could depend on, as comparable values."""
    cache.settle()
    sum_up_root(cache.queues)
    return {
        "tasks": {
            task.uid: (task.status, task.node, task.assumed, task.evicted, task.nominated) for task in all_tasks(cache)
        },
        "nodes": {
            name: (node.used.key(), node.releasing.key(), node.pipelined.key(), sorted(node.tasks))
            for name, node in cache.nodes.items()
        },
        "jobs": {key: _job_state(job) for key, job in cache.jobs.items()},
        "queues": {
            name: (*q.own_sums().keys(), *q.subtree.keys(), q.pending.key()) for name, q in cache.queues.items()
        },
        "neighbours": neighbours_snapshot(cache),
        "volumes": [
            (claim, each.volume, sorted(each.nodes.items()), each.asked)
            for claim, each in cache.storage.promises.items()
        ],
        "cluster": (cache.total.key(), cache.used.key(), cache.promised.key()),
        "buckets": {name: bucket.key for bucket in cache.index.filled_buckets() for name in bucket.members},
    }


def _job_state(job: JobInfo) -> tuple[Any, ...]:
    roles = {role: tuple(counts) for role, counts in job.role_counts.items() if any(counts)}
    return (tuple(job.counts), roles, sorted(job.pending), job.allocated.key(), job.gated.key(), job.phase)
