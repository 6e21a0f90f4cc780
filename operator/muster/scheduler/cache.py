"""The scheduler's model of the cluster, kept current by small changes.

The engine tells it what the API server says (`set_…`, `remove_…`) and how its own writes went (`bind_failed`, …);
a cycle moves tasks; the accounts are the same either way. Every method may be called again with the same value, and
in any order: a pod may come before its PodGroup, its node, or its queue.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from muster.scheduler import companions
from muster.scheduler.accounts import Accounts
from muster.scheduler.job import JobInfo
from muster.scheduler.node import NodeInfo
from muster.scheduler.queue import DEFAULT, IMPLICIT, QueueInfo
from muster.scheduler.resources import Resources
from muster.scheduler.restore import differs_in_status_only, restore_state, status_in
from muster.scheduler.specs import (
    NodeSpec,
    NodeUsage,
    Phase,
    PodDisruptionBudgetSpec,
    PodGroupSpec,
    PriorityClassSpec,
    QueueSpec,
    ResourceQuotaSpec,
    TaskSpec,
    TaskStatus,
)
from muster.scheduler.task import TaskInfo


class SchedulerCache(Accounts):
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
        self.relief.company |= self.neighbours.selections()
        for task in [task for task in node.tasks.values() if task.companion]:
            self.move(task, TaskStatus.PENDING, None)
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
        status, node = _placement(spec)
        if old is not None:
            status, node = _what_stands(old, task, status, node)
            task.nominated = old.nominated if status is TaskStatus.PENDING else None
            task.spoils = old.spoils
            self._detach(old)
        self.tasks[spec.uid] = task
        task.job = self._job_of(spec)
        if self.outlooks:
            self.shape(task)
        self._attach(task, status, node)
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

    def _believe_nomination(self, task: TaskInfo) -> None:
        """A pod that was promised a node before a restart still is, if the room is there (`nominations.restore`)."""
        said = task.spec.verdict
        if said is not None and said.nominated and task.schedulable and task.job is not None:
            task.nominated = said.nominated
            self.nominated.setdefault(task.job.key, 0.0)

    def remove_task(self, uid: str) -> None:
        """A pod is gone."""
        task = self.tasks.pop(uid, None)
        if task is None:
            return
        self._detach(task)
        self._note_relief(task, None)
        self._touch_task(task)
        self._clean_up(task)

    def _touch_task(self, task: TaskInfo) -> None:
        job = task.job
        if job is not None:
            self.touch(job)
            companions.reconcile(self, job, {})

    def bind_failed(self, task_uid: str) -> None:
        """The binding that we sent did not happen: the pod is Pending again."""
        task = self.tasks.get(task_uid)
        if task is None or not task.assumed:
            return
        self.free(task)
        status = TaskStatus.PENDING if task.status is TaskStatus.BINDING else task.status
        self.move(task, status, None)
        task.assumed = False
        self._touch_task(task)

    def evict_failed(self, task_uid: str) -> None:
        """The eviction that we sent did not happen: the pod is what it was."""
        task = self.tasks.get(task_uid)
        if task is None or task.evicted is None:
            return
        before, task.evicted = task.evicted, None
        self.relief.victims = True
        self.move(task, before if task.node is not None else TaskStatus.PENDING, task.node)
        self._touch_task(task)

    def _job_of(self, spec: TaskSpec) -> JobInfo | None:
        """The job that accounts for the pod: none for a pod of others that has no group or no node."""
        if not spec.ours and (not spec.job or _placement(spec)[1] is None):
            return None
        if spec.job:
            return self._job(spec.job)
        key = f"{spec.namespace}/podgroup-{spec.uid}"
        job = self._job(key)
        if job.spec is None:
            job.synthetic = True
            self._apply_pod_group(job, _group_of_one(spec, key))
        return job

    def _attach(self, task: TaskInfo, status: TaskStatus, node: str | None) -> None:
        task.status, task.node = status, node
        if task.job is not None:
            task.job.tasks[task.uid] = task
            task.job.requested.add(task.request)
            task.job.account(task, 1)
        self.occupy(task, 1)

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
            companions.reconcile(self, job, {task.role: task.node} if task.node else {})
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

    # --- namespaces ---

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A Namespace was added or its labels changed."""
        self.neighbours.set_namespace(name, labels)

    def remove_namespace(self, name: str) -> None:
        """A Namespace is gone."""
        self.neighbours.set_namespace(name, None)

    # --- PodGroups ---

    def set_pod_group(self, spec: PodGroupSpec) -> None:
        """A PodGroup was added or changed. The status in it is believed once; from then on ours is newer."""
        job = self._job(spec.key)
        if job.spec != spec:
            self._apply_pod_group(job, spec)

    def remove_pod_group(self, key: str) -> None:
        """A PodGroup is gone. Its pods stay accounted for in its queue until they go too."""
        job = self.jobs.get(key)
        if job is None or job.spec is None or job.synthetic:
            return
        job.spec = None
        companions.reconcile(self, job, {})
        self.lot.unpark(job)
        job.clear_state()
        self.touch(job)
        self.relief.queues.update(job.queue.lineage)
        self.relief.cluster = True
        self._drop_job_if_empty(job)

    def status_unwritten(self, pod_group: str) -> None:
        """The status that an Outcome gave could not be written: say it again."""
        job = self.jobs.get(pod_group)
        if job is not None and job.spec is not None:
            job.published = status_in(job.spec)
            self.changed[job.key] = job

    def _apply_pod_group(self, job: JobInfo, spec: PodGroupSpec) -> None:
        before, job.spec = job.spec, spec
        old = before if before is not None and before.uid == spec.uid else None
        if old is None:
            self.lot.unpark(job)
            job.clear_state()
            restore_state(job, spec)
        else:
            self._note_status(job, spec, old)
            if differs_in_status_only(spec, old):
                return
        job.terms = object()
        self.relief.victims = True
        self._set_queue(job, self.queue(spec.queue or DEFAULT))
        if self.outlooks and (old is None or old.topology != spec.topology):
            self.reshape(job)
        roles = frozenset(each.role for each in spec.companions)
        if roles != job.companion_roles:
            self._set_companion_roles(job, roles)
        job.priority = self._priority(spec.priority_class)
        # Nodes held before a restart. Later the annotation is but an echo of ours, or somebody's wish for a node.
        companions.reconcile(self, job, spec.companion_nodes if old is None else {})
        self.touch(job)

    def _note_status(self, job: JobInfo, spec: PodGroupSpec, old: PodGroupSpec) -> None:
        """Somebody wrote the status: when it was not us, ours has to be said again."""
        stored = status_in(spec)
        said = job.published
        if stored != status_in(old) and (said is None or stored != dataclasses.replace(said, reason=None)):
            job.published = stored
            self.changed[job.key] = job

    def _set_queue(self, job: JobInfo, queue: QueueInfo) -> None:
        before = job.queue
        if before is queue:
            return
        self.put_in_queue(job, queue)
        self.relief.queues.update(before.lineage)
        self.drop_queue_if_empty(before)

    def put_in_queue(self, job: JobInfo, queue: QueueInfo) -> None:
        """Account for the job in another queue."""
        job.queue.jobs.pop(job.key, None)
        self._recount(job, lambda: setattr(job, "queue", queue))
        queue.jobs[job.key] = job
        if self.outlooks:
            self.reshape(job)

    def _set_companion_roles(self, job: JobInfo, roles: frozenset[str]) -> None:
        self._recount(job, lambda: setattr(job, "companion_roles", roles))

    def _recount(self, job: JobInfo, change: Callable[[], None]) -> None:
        """Take the job's accounts back, change it, account for it anew."""
        tasks = list(job.all_tasks())
        for task in tasks:
            job.account(task, -1)
        self.contribute(job, withdraw=True)
        change()
        for task in tasks:
            job.account(task, 1)
        self.unsettled[job.key] = job

    def _job(self, key: str) -> JobInfo:
        job = self.jobs.get(key)
        if job is None:
            job = self.jobs[key] = JobInfo(key, self.ungrouped)
        return job

    def _drop_job_if_empty(self, job: JobInfo) -> None:
        if job.spec is None and not job.tasks:
            self._unlink(job)

    def _unlink(self, job: JobInfo) -> None:
        self.contribute(job, withdraw=True)
        self.rivals.losers.discard(job.key)
        job.queue.jobs.pop(job.key, None)
        self.drop_queue_if_empty(job.queue)
        self.lot.unpark(job)
        for shelf in (self.jobs, self.changed, self.waiting, self.unsettled, self.starved):
            shelf.pop(job.key, None)
        self.reserving.discard(job.key)

    # --- queues and priority classes ---

    def set_queue(self, spec: QueueSpec) -> None:
        """A Queue was added or changed."""
        queue = self.queue(spec.name)
        if queue.spec == spec:
            return
        queue.spec = spec
        self._touch_queue(queue)

    def remove_queue(self, name: str) -> None:
        """A Queue is gone; `root` and `default` go back to what they are by themselves."""
        queue = self.queues.get(name)
        if queue is None:
            return
        queue.spec = IMPLICIT.get(name)
        self._touch_queue(queue)
        self.drop_queue_if_empty(queue)

    def _touch_queue(self, queue: QueueInfo) -> None:
        self.tree_changed = True
        self.relief.queues.update(self.queues)
        self._rules_changed()
        for job in queue.jobs.values():
            self.touch(job)
        if self.outlooks:
            # Queues inherit: what one says can hold for any.
            for job in self.jobs.values():
                self.reshape(job)

    def set_priority_class(self, spec: PriorityClassSpec) -> None:
        """A PriorityClass was added or changed."""
        if self.priority_classes.get(spec.name) != spec:
            self.priority_classes[spec.name] = spec
            self._reprioritise()

    def remove_priority_class(self, name: str) -> None:
        """A PriorityClass is gone."""
        if self.priority_classes.pop(name, None) is not None:
            self._reprioritise()

    def set_resource_quota(self, spec: ResourceQuotaSpec) -> None:
        """A ResourceQuota was added or changed."""
        quotas = self.resource_quotas.setdefault(spec.namespace, {})
        if quotas.get(spec.key) != spec:
            quotas[spec.key] = spec
            self._touch_quota(spec.namespace)

    def remove_resource_quota(self, key: str) -> None:
        """A ResourceQuota is gone."""
        namespace = key.partition("/")[0]
        quotas = self.resource_quotas.get(namespace, {})
        if quotas.pop(key, None) is not None:
            self._touch_quota(namespace)
        if not quotas:
            self.resource_quotas.pop(namespace, None)

    def set_disruption_budget(self, spec: PodDisruptionBudgetSpec) -> None:
        """A PodDisruptionBudget was added or changed."""
        budgets = self.disruption_budgets.setdefault(spec.namespace, {})
        before = budgets.get(spec.key)
        budgets[spec.key] = spec
        if before is not None and (before.selector != spec.selector or before.allowed < spec.allowed):
            self.budgets_relaxed += 1

    def remove_disruption_budget(self, key: str) -> None:
        """A PodDisruptionBudget is gone."""
        namespace = key.partition("/")[0]
        budgets = self.disruption_budgets.get(namespace, {})
        if budgets.pop(key, None) is not None:
            self.budgets_relaxed += 1
        if not budgets:
            self.disruption_budgets.pop(namespace, None)

    def _touch_quota(self, namespace: str) -> None:
        """Wake the gangs of the namespace that wait to be admitted."""
        for job in self.lot.jobs.values():
            if job.phase is Phase.PENDING and job.key.startswith(f"{namespace}/"):
                self.relief.queues.add(job.queue.name)

    def _rules_changed(self) -> None:
        """Who may evict whom has to be asked anew."""
        self.relief.victims = True
        self.rivals.clear()

    def _reprioritise(self) -> None:
        self._rules_changed()
        for job in self.jobs.values():
            priority = self._priority(job.spec.priority_class) if job.spec else 0
            if priority != job.priority:
                job.priority = priority
                self.touch(job)

    def _priority(self, name: str) -> int:
        """The class's value, else the global default's, else 0."""
        named = self.priority_classes.get(name)
        if named is not None:
            return named.value
        defaults = [each for each in self.priority_classes.values() if each.global_default]
        return min(defaults, key=lambda each: (each.value, each.name)).value if defaults else 0


def _placement(spec: TaskSpec) -> tuple[TaskStatus, str | None]:
    """The spec's status and node, made to agree: who has a node is not Pending, who has none is not Bound."""
    if spec.status.finished:
        return spec.status, None
    if spec.node is None:
        return (TaskStatus.RELEASING if spec.status is TaskStatus.RELEASING else TaskStatus.PENDING), None
    return (TaskStatus.BOUND if spec.status is TaskStatus.PENDING else spec.status), spec.node


def _what_stands(old: TaskInfo, new: TaskInfo, status: TaskStatus, node: str | None) -> tuple[TaskStatus, str | None]:
    """What the pod is, given what we have decided and the API server may not show yet."""
    new.verdict = old.verdict
    new.assumed = old.assumed and node is None and not status.finished
    place = old.node if new.assumed else node
    if old.evicted is not None and status in (TaskStatus.PENDING, TaskStatus.BOUND, TaskStatus.RUNNING):
        new.evicted = old.evicted if status is TaskStatus.PENDING else status
        return TaskStatus.RELEASING, place
    if new.assumed and status is TaskStatus.PENDING:
        return TaskStatus.BINDING, place
    return status, place


def _group_of_one(spec: TaskSpec, key: str) -> PodGroupSpec:
    """The PodGroup that a pod without one would get (nothing is written)."""
    return PodGroupSpec(
        namespace=spec.namespace,
        name=key.partition("/")[2],
        uid=spec.uid,
        min_member=1,
        min_resources=spec.request.without_pods(),
        queue=spec.queue or DEFAULT,
        priority_class=spec.priority_class,
        creation=spec.creation,
    )
