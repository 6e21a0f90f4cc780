"""The plugins of a configuration, and how their answers are combined.

A plugin registers functions once, when a configuration is read. Tiers are groups of plugins in order of importance;
the rules below are Volcano's, point by point (reference: Session, extension points). A plugin takes part in a point
only where its flag (`enableJobOrder`, …) is not off.

Plugins import from here what they need: `Plugin`, `ExtensionPoints`, the types of `extension_points`.

Orders of jobs and tasks are keys, not comparisons: smaller goes first, the first plugin that tells two apart decides,
and age and uid decide the rest. Queues are compared, since the order of two queues can depend on both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from muster.scheduler.evictable import EvictionContext, decide
from muster.scheduler.extension_points import ExtensionPoints, JobVote, Outlook, Standing, Tier, Vote
from muster.scheduler.judge import Judge
from muster.scheduler.plugin import Plugin
from muster.scheduler.reasons import Reason

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.resources import Resources
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

__all__ = ["ExtensionPoints", "Framework", "Outlook", "Plugin", "Standing", "Tier", "Vote"]


class Framework:
    """The plugins of one configuration, and the combined answers."""

    def __init__(self, tiers: list[list[tuple[Plugin, dict[str, bool]]]]) -> None:
        self.plugins = [plugin for tier in tiers for plugin, _ in tier]
        self.queues_share_branches = any(flags.get("enableHierarchy", False) for tier in tiers for _, flags in tier)
        self.hierarchical = any(
            plugin.bounds_tree and flags.get("enableHierarchy", False) for tier in tiers for plugin, flags in tier
        )
        self.tiers = [Tier() for _ in tiers]
        self.labels: set[str] = set()
        for tier, entries in zip(self.tiers, tiers, strict=True):
            for plugin, flags in entries:
                plugin.register(ExtensionPoints(tier, flags, self.labels, protects=plugin.protects))
        self._job_order = list(self._all("job_order"))
        self._task_order = list(self._all("task_order"))
        self._queue_order = list(self._all("queue_order"))
        self._job_ready = list(self._all("job_ready"))
        self._job_valid = list(self._all("job_valid"))
        self._allocatable = list(self._all("allocatable"))
        self._kinds = list(self._all("kinds"))
        self._allocated = list(self._all("allocated"))
        self._deallocated = list(self._all("deallocated"))
        self.follows_tasks = bool(self._allocated or self._deallocated)
        self.outlooks: tuple[Outlook, ...] = tuple(self._all("outlooks"))
        self._timed = [each for each in self.plugins if type(each).job_deadline is not Plugin.job_deadline]
        self._patient = [each for each in self.plugins if type(each).may_wait_until is not Plugin.may_wait_until]
        self.judge = Judge(
            predicates=tuple(self._all("predicates")),
            node_orders=tuple(self._all("node_orders")),
            make_orders=tuple(self._all("make_orders")),
            node_predicates=tuple(self._all("node_predicates")),
            checks=tuple(self._all("checks")),
            wishes=tuple(self._all("wishes")),
            hurdles=tuple(self._all("hurdles")),
        )

    def _all(self, point: str) -> Iterator[Any]:
        for tier in self.tiers:
            yield from getattr(tier, point)

    # --- orders: the first that tells two apart decides ---

    def job_key(self, session: Session, job: JobInfo) -> tuple[Any, ...]:
        """Sorts jobs: smaller goes first."""
        return (*[order(session, job) for order in self._job_order], job.age_order)

    def task_key(self, session: Session, task: TaskInfo) -> tuple[Any, ...]:
        """Sorts the tasks of a job."""
        return (*[order(session, task) for order in self._task_order], task.order)

    def job_rank(self, session: Session, job: JobInfo) -> tuple[Any, ...]:
        """The plugins' part of `job_key`: equal for jobs that none of them tells apart."""
        return tuple([order(session, job) for order in self._job_order])

    def compare_queues(self, session: Session, left: QueueInfo, right: QueueInfo) -> int:
        """Negative when `left` goes first."""
        for order in self._queue_order:
            verdict: int = order(session, left, right)
            if verdict:
                return verdict
        return 0

    def kind(self, job: JobInfo) -> Hashable:
        """Equal for jobs that all plugins treat alike, as far as their shapes and queues are alike."""
        return tuple(kind(job) for kind in self._kinds)

    # --- time ---

    def job_deadlines(self, session: Session, job: JobInfo) -> list[float]:
        """When plugins will think otherwise of the job."""
        asked = (plugin.job_deadline(session, job) for plugin in self._timed)
        return [at for at in asked if at is not None]

    def may_wait_until(self, job: JobInfo) -> float:
        """Until when the job itself agrees to wait; 0 where it says nothing of that."""
        asked = (plugin.may_wait_until(job) for plugin in self._patient)
        return max([at for at in asked if at is not None], default=0.0)

    def deadlines(self, session: Session) -> list[float]:
        """When plugins will think otherwise of everything."""
        asked = (plugin.deadline(session) for plugin in self.plugins)
        return [at for at in asked if at is not None]

    def judge_anew(self, session: Session) -> None:
        """A plugin thinks otherwise of nodes from now on, though no node has changed."""
        self.judge = replace(self.judge)
        session.cache.index.use(self.judge)
        session.cache.relief.everything = True

    # --- all must agree ---

    def job_ready(self, session: Session, job: JobInfo) -> bool:
        """Every plugin calls the job ready; true without one."""
        return all(check(session, job) for check in self._job_ready)

    def allocated(self, session: Session, task: TaskInfo) -> Reason | None:
        """Tell every plugin that the task has its node; the first objection, after which nobody else is told."""
        for tell in self._allocated:
            objection: Reason | None = tell(session, task)
            if objection is not None:
                return objection
        return None

    def deallocated(self, session: Session, task: TaskInfo, node: str) -> None:
        """Tell every plugin that the task has lost its node."""
        for tell in self._deallocated:
            tell(session, task, node)

    def job_valid(self, session: Session, job: JobInfo) -> Reason | None:
        """The first plugin's objection."""
        for check in self._job_valid:
            objection: Reason | None = check(session, job)
            if objection is not None:
                return objection
        return None

    def allocatable(self, session: Session, queue: QueueInfo, request: Resources) -> Reason | None:
        """The first plugin's objection to giving `queue` another `request`."""
        for check in self._allocatable:
            objection: Reason | None = check(session, queue, request)
            if objection is not None:
                return objection
        return None

    def preemptive(self, session: Session, queue: QueueInfo, tasks: Sequence[TaskInfo]) -> Reason | None:
        """The first plugin's objection to the queue reclaiming room for these tasks."""
        for check in self._all("preemptive"):
            objection: Reason | None = check(session, queue, tasks)
            if objection is not None:
                return objection
        return None

    # --- who has to go ---

    def preemptable(self, session: Session, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """Which candidates, the first victim first, may be evicted for a task of their own queue."""
        return self._evictable("preemptable", session, preemptor, candidates)

    def reclaimable(self, session: Session, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        """Which candidates, the first victim first, may be evicted for a task of another queue."""
        return self._evictable("reclaimable", session, reclaimer, candidates)

    def unified_evictable(
        self, session: Session, context: EvictionContext, candidates: Sequence[TaskInfo]
    ) -> list[TaskInfo]:
        """Which candidates, the first victim first, may be evicted for a whole gang."""
        return self._evictable("unified_evictable", session, context, candidates)

    def _evictable(self, point: str, session: Session, for_whom: Any, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
        for tier in self.tiers:
            for protector in tier.protectors[point]:
                permitted = protector(session, for_whom, candidates)
                candidates = candidates if permitted is None else permitted
        if not candidates:
            return []
        return decide(
            (partial(check, session, for_whom, candidates) for check in getattr(tier, point)) for tier in self.tiers
        )

    def compare_victim_queues(self, session: Session, left: QueueInfo, right: QueueInfo, preemptor: QueueInfo) -> int:
        """Negative when `left` loses its pods first; 0 when no plugin minds, then the order of queues is reversed."""
        for order in self._all("victim_queue_order"):
            verdict: int = order(session, left, right, preemptor)
            if verdict:
                return verdict
        return 0

    def victim_tasks(self, session: Session, running: Sequence[TaskInfo]) -> list[TaskInfo]:
        """The tasks that should leave where they are: the first tier's that names any, if all filters let them."""
        for tier in self.tiers:
            chosen = {task.uid: task for check in tier.victim_tasks for task in check(session, running)}
            if chosen:
                victims: Sequence[TaskInfo] = [task for task in running if task.uid in chosen]
                for spare in self._all("victim_filters"):
                    victims = spare(session, victims)
                return list(victims)
        return []

    # --- votes and other rules ---

    def overused(self, session: Session, queue: QueueInfo) -> bool:
        """Any plugin calls the queue overused."""
        return any(check(session, queue) for check in self._all("overused"))

    def queue_standing(self, session: Session, queue: QueueInfo) -> Standing | None:
        """What the first plugin that knows the queue says of it."""
        for tell in self._all("queue_standing"):
            standing: Standing | None = tell(session, queue)
            if standing is not None:
                return standing
        return None

    def job_starving(self, session: Session, job: JobInfo) -> bool:
        """The first tier that has an opinion decides, and there all must agree; nobody has one: false."""
        for tier in self.tiers:
            if tier.job_starving:
                return all(check(session, job) for check in tier.job_starving)
        return False

    def job_enqueueable(self, session: Session, job: JobInfo) -> Reason | None:
        """The objection to admitting the job, None when it may enter."""
        return self._vote(session, job, [tier.job_enqueueable for tier in self.tiers])[1]

    def job_pipelined(self, session: Session, job: JobInfo) -> bool:
        """Whether what the job has been promised is worth holding."""
        return self._vote(session, job, [tier.job_pipelined for tier in self.tiers])[1] is None

    def holds_room(self, session: Session, job: JobInfo) -> bool:
        """Whether a plugin wants what the job has found to be held although the rest is missing."""
        return self._vote(session, job, [tier.job_pipelined for tier in self.tiers])[0]

    def job_enqueued(self, session: Session, job: JobInfo) -> None:
        """Tell every plugin that the job was admitted."""
        for callback in self._all("job_enqueued"):
            callback(session, job)

    def _vote(self, session: Session, job: JobInfo, tiers: list[list[JobVote]]) -> tuple[bool, Reason | None]:
        """Any rejection is final; a tier that ends with a permit keeps later tiers from being asked.

        Gives whether there was a permit, and the rejection.
        """
        for votes in tiers:
            permitted = False
            for vote in votes:
                answer = vote(session, job)
                if isinstance(answer, Reason):
                    return False, answer
                permitted = permitted or answer is True
            if permitted:
                return True, None
        return False, None
