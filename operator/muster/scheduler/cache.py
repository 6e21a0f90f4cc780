"""The scheduler's model of the cluster, kept current by small changes.

The engine tells it what the API server says (`set_…`, `remove_…`) and how its own writes went (`bind_failed`, …);
a cycle moves tasks; the accounts are the same either way. Every method may be called again with the same value, and
in any order: a pod may come before its PodGroup, its node, or its queue.
"""

from __future__ import annotations

import dataclasses

from muster.scheduler import companions
from muster.scheduler.job import JobInfo
from muster.scheduler.node import NodeInfo
from muster.scheduler.observed import group_of_one, placement_in, what_stands
from muster.scheduler.pod_groups import PodGroups
from muster.scheduler.resources import Resources
from muster.scheduler.specs import NodeSpec, NodeUsage, TaskSpec, TaskStatus
from muster.scheduler.task import TaskInfo


class SchedulerCache(PodGroups):
    """Everything a cycle reads. Changed only on one event loop; a cycle and an event never overlap."""

    # --- nodes ---

    def set_node(self, spec: NodeSpec) -> None:
        """A node was added or changed."""
        node = self.nodes.get(spec.name)
        if node is None:
            node = self.nodes[spec.name] = NodeInfo(spec.name)
        if spec.usage is None:
            spec = self._with_usage(spec, node)
        if node.spec == spec:
            return
        self._count_node(node, known=False)
        self.neighbours.node_leaves(node)
        node.spec = spec
        self.neighbours.node_joins(node)
        self._count_node(node, known=True)
        self.index.set_spec(node)
        self.relief.nodes[spec.name] = node
        self.relief.company |= self.neighbours.selections()
        self.relief.cluster = True
        if spec.name in self.gone_nodes:
            self.gone_nodes.discard(spec.name)
            self._touch_jobs_on(node)

    def set_node_usage(self, name: str, usage: NodeUsage) -> None:
        """What a node really uses was read."""
        node = self.nodes.get(name)
        if node is not None and node.spec is not None:
            self.set_node(dataclasses.replace(node.spec, usage=usage))

    def _with_usage(self, spec: NodeSpec, node: NodeInfo) -> NodeSpec:
        """The node as it is described now, with what it was known to use."""
        known = node.usage
        return spec if known is None else dataclasses.replace(spec, usage=known)

    def remove_node(self, name: str) -> None:
        """A node is gone. Pods that still name it keep their account until they go too; their gangs have lost them."""
        node = self.nodes.get(name)
        if node is None or node.spec is None:
            return
        self._count_node(node, known=False)
        self.index.remove(node)
        self.neighbours.node_leaves(node)
        node.spec = None
        self.relief.nodes.pop(name, None)
        self.relief.victims = True  # others than those on this node may be the ones to go
        self.relief.company |= self.neighbours.selections()
        for task in [task for task in node.tasks.values() if task.companion]:
            companions.vacate(self, task)
            self._touch_task(task)
        self.gone_nodes.add(name)
        self._touch_jobs_on(node)
        self.drop_if_empty(node)

    def _touch_jobs_on(self, node: NodeInfo) -> None:
        for job in {task.job.key: task.job for task in node.tasks.values() if task.job is not None}.values():
            self.touch(job)

    def _count_node(self, node: NodeInfo, *, known: bool) -> None:
        if node.spec is None:
            return
        change = Resources.add if known else Resources.sub
        change(self.total, node.spec.allocatable)
        change(self.used, node.used)

    # --- pods ---

    def set_task(self, spec: TaskSpec) -> None:
        """A pod was added or changed.

        What we have decided and the API server does not show yet stands: a pod that we are binding stays Binding
        while it has no node, one that we are evicting stays Releasing while it has no deletion time.
        """
        old = self.tasks.get(spec.uid)
        if old is not None and old.spec == spec:
            return
        task = self.admit(spec)
        status, node = self._place_of(spec)
        if old is not None:
            status, node = what_stands(old, task, status, node)
            self._keep_room_of(old, task, status, node)
            task.spoils = old.spoils
            task.delegated_at = old.delegated_at
            self.undelegate(old)
            self._detach(old)
        self._count_claims(old, task)
        task.assumed = task.assumed or status is TaskStatus.BINDING
        self.tasks[spec.uid] = task
        task.job = self._job_of(spec)
        if self.outlooks:
            self.shape(task)
        self._attach(task, status, node)
        self._await_default_scheduler(task)
        self.leaving.note(task)
        if old is None:
            self._believe_nomination(task)
        if status in (TaskStatus.BOUND, TaskStatus.RUNNING):
            self.relief.victims = True
        if old is not None:
            self._note_relief(old, task)
            self._clean_up(old)
        elif task.node is not None:
            self.note_company(task)
        self._touch_task(task)

    def _place_of(self, spec: TaskSpec) -> tuple[TaskStatus, str | None]:
        """Where the pod is, or is about to be: one that was handed to the default scheduler can go nowhere else.

        Anybody can make a pod that says so. It is believed where we decided it, and of what is read before the first
        cycle: that may be the decision of an earlier Muster.
        """
        status, node = placement_in(spec)
        chosen = spec.delegation.node if spec.delegation is not None else ""
        if status is not TaskStatus.PENDING or not chosen:
            return status, node
        if self.has_begun and chosen not in self.asked.get(spec.uid, ()):
            return status, node
        return TaskStatus.BINDING, chosen

    def _keep_room_of(self, old: TaskInfo, new: TaskInfo, status: TaskStatus, node: str | None) -> None:
        """Room that was promised to a pod is kept as long as it waits. Whoever minds what it is, is asked again."""
        kept = old.nominated
        if kept is None:
            return
        if status is TaskStatus.PENDING and new.shape is old.shape:
            new.nominated = kept
            return
        if node != kept:
            self.give_room_up(old)
        if status is TaskStatus.PENDING:
            self.keep_room(new, kept)

    def _await_default_scheduler(self, task: TaskInfo) -> None:
        """Keep count of how long a pod that was delegated, by whomever, has been waiting for its binding."""
        delegation = task.spec.delegation
        if delegation is None:
            return
        if task.status is TaskStatus.BINDING or (task.status is TaskStatus.PENDING and task.pinned):
            self.delegate(task, delegation.since)
        else:
            self.undelegate(task)
        if task.spec.node is not None:
            self.asked.pop(task.uid, None)

    def _believe_nomination(self, task: TaskInfo) -> None:
        """A pod that was promised a node before a restart still is, if the room is there (`nominations.restore`)."""
        said = task.spec.verdict
        if self.has_begun:
            return
        if said is not None and said.nominated and task.schedulable and task.job is not None:
            task.nominated = said.nominated
            self.nominated.setdefault(task.job.key, 0.0)

    def remove_task(self, uid: str) -> None:
        """A pod is gone."""
        task = self.tasks.pop(uid, None)
        if task is None:
            return
        self.leaving.forget(uid)
        self.asked.pop(uid, None)
        self.give_room_up(task)
        self._detach(task)
        self._count_claims(task, None)
        self.undelegate(task)
        self._note_relief(task, None)
        self._touch_task(task)
        self._clean_up(task)

    def _touch_task(self, task: TaskInfo) -> None:
        job = task.job
        if job is not None:
            self.touch(job)
            companions.reconcile(self, job)

    def bind_failed(self, task_uid: str) -> None:
        """The binding that we sent did not happen: the pod is Pending again."""
        task = self.tasks.get(task_uid)
        if task is None or not task.assumed:
            return
        self.free(task)
        status = TaskStatus.PENDING if task.status is TaskStatus.BINDING else task.status
        self.move(task, status, None)
        task.assumed = False
        self.undelegate(task)
        self.leaving.note(task)
        self._touch_task(task)

    def evict_failed(self, task_uid: str) -> None:
        """The eviction that we sent did not happen: the pod is what it was."""
        task = self.tasks.get(task_uid)
        if task is None or task.evicted is None:
            return
        before, task.evicted = task.evicted, None
        self.relief.victims = True
        self.move(task, before if task.node is not None else TaskStatus.PENDING, task.node)
        self.leaving.note(task)
        self._touch_task(task)

    def _job_of(self, spec: TaskSpec) -> JobInfo | None:
        """The job that accounts for the pod: none for a pod of others that has no group or no node."""
        if not spec.ours and (not spec.job or spec.node is None or spec.status.finished):
            return None
        if spec.job:
            return self._job(spec.job)
        key = f"{spec.namespace}/podgroup-{spec.uid}"
        job = self._job(key)
        if job.spec is None:
            job.synthetic = True
            self._apply_pod_group(job, group_of_one(spec, key))
        return job

    def _attach(self, task: TaskInfo, status: TaskStatus, node: str | None) -> None:
        task.status, task.node = status, node
        if task.job is not None:
            task.job.tasks[task.uid] = task
            task.job.requested.add(task.request)
            task.job.account(task, 1)
        self.occupy(task, 1)
        self.keep_volumes(task)

    def _count_claims(self, old: TaskInfo | None, new: TaskInfo | None) -> None:
        """A pod came, went or changed; while it is there, so are the promises of volumes to its claims."""
        before = old.spec.scheduling.claims if old is not None else ()
        after = new.spec.scheduling.claims if new is not None else ()
        if before == after:
            return
        if old is not None:
            self.storage.break_promise(old.uid, before)
        self.storage.count_pod(after, 1)
        self.storage.count_pod(before, -1)

    def _detach(self, task: TaskInfo) -> None:
        self.occupy(task, -1)
        job = task.job
        if job is not None:
            job.account(task, -1)
            job.tasks.pop(task.uid, None)
            job.requested.sub(task.request)
            self.touch(job)
        self.dismiss(task)

    def _clean_up(self, task: TaskInfo) -> None:
        """Forget the job of a task that is gone when nothing else keeps it."""
        job = task.job
        if job is None:
            return
        if job.synthetic and not job.tasks:
            self._unlink(job)
        else:
            if task.node is not None and task.status.placed and job.is_companion(task):
                job.former_places[task.role] = task.node
            companions.reconcile(self, job)
            self._drop_job_if_empty(job)

    def _note_relief(self, old: TaskInfo, new: TaskInfo | None) -> None:
        """Whatever the pod took and takes no more is free for others."""
        unchanged = (
            new is not None
            and new.node == old.node
            and new.status.holds is old.status.holds
            and (new.status is TaskStatus.RELEASING) is (old.status is TaskStatus.RELEASING)
            and new.request == old.request
            and new.shape is old.shape
        )
        if unchanged:
            return
        if new is not None and new.node is not None:
            self.note_company(new)
        if old.node is not None:
            self.free(old)
