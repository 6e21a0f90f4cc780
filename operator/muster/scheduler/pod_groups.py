"""The PodGroups as the API server shows them, and the life of the jobs that stand for them.

A job exists as long as a PodGroup or a pod names it, in whichever order they come and go.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from muster.scheduler import companions
from muster.scheduler.cluster_rules import ClusterRules
from muster.scheduler.job import JobInfo
from muster.scheduler.queue import DEFAULT, QueueInfo
from muster.scheduler.restore import differs_in_status_only, restore_state, status_in
from muster.scheduler.specs import PodGroupSpec


class PodGroups(ClusterRules):
    """The part of SchedulerCache that hears of PodGroups."""

    def set_pod_group(self, spec: PodGroupSpec) -> None:
        """A PodGroup was added or changed. The status is believed once, at the start; from then on ours is newer."""
        job = self._job(spec.key)
        if job.spec != spec:
            self._apply_pod_group(job, spec)

    def remove_pod_group(self, key: str) -> None:
        """A PodGroup is gone. From the next cycle on its pods are charged to the queue that they name themselves."""
        job = self.jobs.get(key)
        if job is None or job.spec is None or job.synthetic:
            return
        job.spec = None
        companions.reconcile(self, job)
        self.lot.unpark(job)
        job.clear_state()
        self.touch(job)
        self.relief.queues.update(job.queue.lineage)
        self.relief.cluster = self.relief.victims = True
        self._drop_job_if_empty(job)

    def _apply_pod_group(self, job: JobInfo, spec: PodGroupSpec) -> None:
        before, job.spec = job.spec, spec
        old = before if before is not None and before.uid == spec.uid else None
        if old is None:
            self.lot.unpark(job)
            job.clear_state()
            restore_state(job, spec, believed=not self.has_begun)
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
        companions.reconcile(self, job)
        if old is None and not self.has_begun:
            # Later the annotation is but an echo of ours, or somebody's wish for a node.
            job.former_places = dict(spec.companion_nodes)
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

    def queue_the_groupless(self) -> None:
        """Charge pods whose PodGroup is not there to the queue that they name, else to `default`.

        They hold what they hold, and after a restart nothing tells in which queue the PodGroup was (P5).
        """
        for job in [job for job in self.changed.values() if job.spec is None]:
            named = (task.spec.queue for task in job.tasks.values() if task.spec.queue)
            self._set_queue(job, self.queue(min(named, default=DEFAULT)))

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
        for shelf in (self.jobs, self.changed, self.waiting, self.unsettled, self.starved, self.hopeless):
            shelf.pop(job.key, None)
        self.reserving.pop(job.key, None)
