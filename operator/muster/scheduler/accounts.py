"""The accounts of the cluster, and the one way to change them.

Nodes, jobs, queues and the cluster's sums are kept current by `move`, whichever way a change came: from the API server
(SchedulerCache) or from a Statement. What follows from a job's state as a whole (its part in promises) is brought up
to date by `settle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.scheduler.device_book import Devices
from muster.scheduler.hierarchy import link
from muster.scheduler.job import NO_CONTRIBUTION, JobInfo
from muster.scheduler.leaving import Leaving
from muster.scheduler.neighbours import Neighbours
from muster.scheduler.node import NodeInfo
from muster.scheduler.parking import ParkingLot, Relief
from muster.scheduler.placement import NodeIndex
from muster.scheduler.queue import IMPLICIT, QueueInfo
from muster.scheduler.reasons import Reason
from muster.scheduler.resources import Resources
from muster.scheduler.rivals import Rivals
from muster.scheduler.shapes import ShapeBook
from muster.scheduler.specs import PodDisruptionBudgetSpec, PriorityClassSpec, ResourceQuotaSpec, TaskSpec, TaskStatus
from muster.scheduler.storage import Storage
from muster.scheduler.task import TaskInfo

if TYPE_CHECKING:
    from muster.scheduler.framework import Outlook
    from muster.scheduler.hold_plan import Hold
    from muster.scheduler.kept_room import Places

_UNGROUPED = ""


class Accounts:
    """The model's data.

    `total` and `used` are sums over known nodes, `promised` what admitted jobs have reserved. `changed` are the jobs
    whose status has to be worked out again, `waiting` those that the actions look at, `unsettled` those whose part in
    promises may be out of date. `tree_changed` says that queues have come, gone or changed since `settle`,
    `tree_version` counts how often. `relief` is what got better since the last cycle, `reserving` are the jobs that
    ended it with room promised on nodes, and where, `nominated` those for which such room is kept, and since when (Unix
    seconds).
    `resource_quotas` and `disruption_budgets` are by namespace and key; `budgets_relaxed` grows whenever one of the
    latter may allow more. `starved` are the jobs that have waited too long, `holds` what is held for the first of them
    (as it was worked out from `holds_seen`), `hopeless` those that can't be placed at all. `has_begun` says that a
    cycle has run: what is read from then on tells nothing of before a restart. `memory` belongs to the cycle.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.delegated: dict[str, dict[str, TaskInfo]] = {}
        """Job to its pods (by uid) that the default scheduler has been told to bind and has not bound yet."""
        self.asked: dict[str, frozenset[str]] = {}
        """Pods (by uid) to the nodes on which the default scheduler was told to bind them, as long as it has not."""
        self.gone_nodes: set[str] = set()
        """Nodes that were deleted while pods were on them, until those are deleted too."""
        self.tasks: dict[str, TaskInfo] = {}
        self.jobs: dict[str, JobInfo] = {}
        self.devices = Devices(self.nodes, self._on_devices_changed, self._on_claim_reweighed)
        self.queues: dict[str, QueueInfo] = {name: QueueInfo(name, self.devices.weigh) for name in IMPLICIT}
        self.priority_classes: dict[str, PriorityClassSpec] = {}
        self.resource_quotas: dict[str, dict[str, ResourceQuotaSpec]] = {}
        self.disruption_budgets: dict[str, dict[str, PodDisruptionBudgetSpec]] = {}
        self.budgets_relaxed = 0
        self.total = Resources()
        self.used = Resources()
        self.promised = Resources()
        self.index = NodeIndex()
        self.neighbours = Neighbours(self.nodes, self._rematch)
        self.shapes = ShapeBook(self.index, self.neighbours)
        self.lot = ParkingLot()
        self.storage = Storage(self._on_storage_changed)
        self.relief = Relief()
        self.changed: dict[str, JobInfo] = {}
        self.waiting: dict[str, JobInfo] = {}
        self.reserving: dict[str, Places] = {}
        self.starved: dict[str, JobInfo] = {}
        self.holds: list[Hold] = []
        self.holds_seen: object = None
        self.nominated: dict[str, float] = {}
        self.rivals = Rivals()
        self.leaving = Leaving(self._mark_overdue)
        self.has_begun = False
        self.memory: object = None
        self.unsettled: dict[str, JobInfo] = {}
        self.hopeless: dict[str, JobInfo] = {}
        self.ungrouped = QueueInfo(_UNGROUPED, self.devices.weigh)
        self.outlooks: tuple[Outlook, ...] = ()
        self.tree_changed = True
        self.tree_version = 0

    def move(self, task: TaskInfo, status: TaskStatus, node: str | None) -> None:
        """Change a task's status and node, and every account with it."""
        job = task.job
        if job is not None:
            job.account(task, -1)
        same_place = task.node == node and status.holds and task.status.holds
        same_place = same_place and TaskStatus.RELEASING not in (status, task.status)
        if not same_place:
            self.occupy(task, -1)
        task.status, task.node = status, node
        if not same_place:
            self.occupy(task, 1)
        if job is not None:
            job.account(task, 1)
            self.unsettled[job.key] = job
            self.changed[job.key] = job
        self.keep_volumes(task)

    def keep_volumes(self, task: TaskInfo) -> None:
        """Wherever the task is, the volumes that its claims get there are for nobody else."""
        claims = task.spec.scheduling.claims
        if not claims:
            return
        node = self.nodes.get(task.node) if task.node is not None and not task.status.finished else None
        if node is None:
            self.storage.break_promise(task.uid, claims)
        else:
            self.storage.promise(task.uid, claims, node)

    def occupy(self, task: TaskInfo, sign: int) -> None:
        """Enter the task in its node's account, or strike it out."""
        if task.node is None or task.status.finished:
            return
        node = self.nodes.get(task.node)
        if node is None:
            node = self.nodes[task.node] = NodeInfo(task.node)
        if sign > 0:
            node.add(task)
        else:
            node.remove(task)
        if task.shape.counted:
            self.neighbours.count(task, node, sign)
        self._hold_devices(task, sign)
        if node.spec is not None:
            self.index.touch(node)
            if task.status.holds:
                (Resources.add if sign > 0 else Resources.sub)(self.used, task.spec.request)
        elif sign < 0:
            self.drop_if_empty(node)

    def _hold_devices(self, task: TaskInfo, sign: int) -> None:
        if task.shape.devices is not None and task.node is not None:
            self.devices.hold(task, task.node, sign)

    def admit(self, spec: TaskSpec, *, companion: bool = False) -> TaskInfo:
        """A task for a pod (or the placeholder of one), in no account yet."""
        identity = self.neighbours.identity(spec.namespace, spec.labels)
        shape = self.shapes.take(spec.request, spec.init_request, spec.scheduling, identity)
        task = TaskInfo(spec, shape, identity, companion=companion)
        self.neighbours.enrol(task)
        return task

    def dismiss(self, task: TaskInfo) -> None:
        """The task is in no account any more."""
        self.neighbours.strike(task)
        self.shapes.give_back(task.shape)

    def _rematch(self, task: TaskInfo) -> None:
        """Other selections than before match the pod."""
        self.shape(task)
        if task.job is not None and task.status is TaskStatus.PENDING:
            self.touch(task.job)

    def note_company(self, task: TaskInfo) -> None:
        """The task came or went: whoever waits for, or keeps away from, pods like it has to be asked again."""
        if task.shape.counted:
            self.relief.company |= task.shape.concerns

    def delegate(self, task: TaskInfo, since: float) -> None:
        """The default scheduler has to bind the task, and knows since then."""
        if task.job is None:
            return
        if task.node is not None:
            self.asked[task.uid] = self.asked.get(task.uid, frozenset()) | {task.node}
        if task.delegated_at is None:
            task.delegated_at = since
        self.delegated.setdefault(task.job.key, {})[task.uid] = task

    def undelegate(self, task: TaskInfo) -> None:
        """Nothing is expected of the default scheduler any more."""
        task.delegated_at = None
        key = task.job.key if task.job is not None else ""
        waiting = self.delegated.get(key)
        if waiting is not None:
            waiting.pop(task.uid, None)
            if not waiting:
                del self.delegated[key]

    def free(self, task: TaskInfo) -> None:
        """Note that what the task holds is, or is about to be, free for others."""
        self.relief.add_place(task, self.nodes.get(task.node) if task.node is not None else None)

    def keep_room(self, task: TaskInfo, node: str) -> None:
        """From now on room on the node is kept for the task, which has been promised it."""
        if task.nominated == node:
            return
        self.give_room_up(task)
        task.nominated = node
        self.note_company(task)

    def give_room_up(self, task: TaskInfo) -> None:
        """No room is kept for the task any more: whoever could use it is asked again."""
        name, task.nominated = task.nominated, None
        if name is not None:
            self.relief.add_place(task, self.nodes.get(name))

    def _on_storage_changed(self) -> None:
        self.relief.storage = True

    def _on_devices_changed(self, claim: str | None) -> None:
        if claim is None:
            self.relief.devices = True
        else:
            self.relief.claims.add(claim)

    def _on_claim_reweighed(self, key: str) -> None:
        for queue in self.queues.values():
            if queue.claims.reweigh(key):
                self.relief.queues.update(queue.lineage)

    def look_out(self, outlooks: tuple[Outlook, ...]) -> None:
        """Let these plugins say what else decides on which nodes tasks may run."""
        if outlooks or self.outlooks:
            self.outlooks = outlooks
            for job in self.jobs.values():
                self.reshape(job)

    def reshape(self, job: JobInfo) -> None:
        """What else decides on the job's nodes may have changed."""
        for task in [*job.pending.values(), *job.placeholders.values()]:
            if task.node is None:
                self.shape(task)

    def shape(self, task: TaskInfo) -> None:
        """Give the task the shape of its own constraints, of what plugins add to them, and of what selects it."""
        spec, scheduling = task.spec, task.spec.scheduling
        for outlook in self.outlooks:
            scheduling = outlook(task, self.queues, scheduling)
        shape = self.shapes.take(spec.request, spec.init_request, scheduling, task.identity)
        before = task.shape
        if shape is not before:
            self._count_as_neighbour(task, -1)
            task.shape = shape
            self._count_as_neighbour(task, 1)
            if task.job is not None:
                task.job.shape_key = None
        self.shapes.give_back(before)

    def _count_as_neighbour(self, task: TaskInfo, sign: int) -> None:
        node = self.nodes.get(task.node) if task.node is not None and not task.status.finished else None
        if node is not None and task.shape.counted:
            self.neighbours.count(task, node, sign)
            self.note_company(task)

    def _mark_overdue(self, task: TaskInfo, overdue: bool) -> None:
        """The pod should have left by now, or is no such pod any more: what it does to others is another thing."""
        node = self.nodes.get(task.node) if task.node is not None else None
        if task.overdue is overdue or node is None or node.tasks.get(task.uid) is not task:
            task.overdue = overdue
            return
        self._count_as_neighbour(task, -1)
        self._hold_devices(task, -1)
        task.overdue = overdue
        self._count_as_neighbour(task, 1)
        self._hold_devices(task, 1)

    def touch(self, job: JobInfo) -> None:
        """Something about the job itself changed: look at it in the next cycle."""
        self.changed[job.key] = job
        self.waiting[job.key] = job
        self.unsettled[job.key] = job
        self.lot.unpark(job)
        job.shape_key = None
        if job.key in self.reserving:
            del self.reserving[job.key]
            self.relief.everything = True

    def settle(self) -> None:
        """Bring the tree of queues and the promises (`inqueue`, `elastic`, `promised`) up to date."""
        self.settle_tree()
        self.gone_nodes &= self.nodes.keys()
        for job in self.unsettled.values():
            self.contribute(job)
        self.unsettled.clear()

    def settle_tree(self) -> None:
        """Bring the tree of queues up to date, and look at the gangs of every queue that it opens or blocks."""
        if self.tree_changed:
            self.tree_changed = False
            self.tree_version += 1
            for queue in link(self.queues):
                for job in queue.jobs.values():
                    self.touch(job)

    def unsettle(self, job: JobInfo) -> None:
        """The job's phase or reservation changed."""
        self.unsettled[job.key] = job

    def note_never(self, job: JobInfo, never: Reason | None) -> bool:
        """Remember why the gang's pods can't be placed at all here (None: they could be); whether that is new.

        What can't be placed reserves nothing, and its queue gets no part of the cluster for it.
        """
        never = never if job.tasks else None
        new = (never is None) is not (job.never is None)
        job.never = never
        if new:
            self.unsettle(job)
        if never is None:
            self.hopeless.pop(job.key, None)
        else:
            self.hopeless[job.key] = job
        return new

    def contribute(self, job: JobInfo, *, withdraw: bool = False) -> None:
        """Replace the job's part in promises by what it is now, or by nothing."""
        before = job.contribution
        after = NO_CONTRIBUTION if withdraw else job.compute_contribution()
        job.contribution = after
        queue = job.queue
        queue.pending.add(after.wanted)
        queue.pending.sub(before.wanted)
        for sums in (queue.own_sums(), *queue.charged):
            sums.inqueue.add(after.inqueue)
            sums.inqueue.sub(before.inqueue)
            sums.elastic.add(after.elastic)
            sums.elastic.sub(before.elastic)
        self.promised.add(after.promised)
        self.promised.sub(before.promised)
        if not (before.inqueue.less_equal(after.inqueue) and after.elastic.less_equal(before.elastic)):
            self.relief.queues.update(queue.lineage)
        if not before.promised.less_equal(after.promised):
            self.relief.cluster = True

    def queue(self, name: str) -> QueueInfo:
        """The queue of that name, made when only jobs name it."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = QueueInfo(name, self.devices.weigh)
            self.tree_changed = True
        return queue

    def drop_queue_if_empty(self, queue: QueueInfo) -> None:
        """Forget a queue that neither exists nor is named by a job."""
        if queue.spec is None and not queue.jobs and queue.name:
            self.queues.pop(queue.name, None)
            self.tree_changed = True

    def drop_if_empty(self, node: NodeInfo) -> None:
        """Forget a node that neither exists nor is named by a pod."""
        if node.spec is None and not node.tasks:
            self.nodes.pop(node.name, None)
