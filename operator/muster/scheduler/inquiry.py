"""What is worked out about a waiting gang only when somebody asks.

Its position in the queue, how long it has waited, who has the room, and what it could ask for instead change with
every pod that starts or ends anywhere. Nobody could write that to a thousand PodGroups in each cycle, and whoever has
the room may be nobody that the gang's owner should know of. `muster simulate` and `muster explain` ask here, after a
cycle, on a model of their own; the answers leave it as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from muster.scheduler.cycle import framework_of
from muster.scheduler.eligibility import held_back, held_by
from muster.scheduler.emptied import too_few_if_empty
from muster.scheduler.explain import survey_nodes
from muster.scheduler.placing import find_places, gang_key
from muster.scheduler.reasons import Code, Holder, Reason, ReasonClass, describe, describe_nodes
from muster.scheduler.resources import CPU, share
from muster.scheduler.session import Session
from muster.scheduler.specs import Phase
from muster.scheduler.suggestion import Trials, suggest
from muster.scheduler.takeable import can_be_taken, takes_anything

if TYPE_CHECKING:
    from muster.scheduler.cache import SchedulerCache
    from muster.scheduler.conf import SchedulerConfiguration
    from muster.scheduler.hold_plan import Hold
    from muster.scheduler.job import JobInfo
    from muster.scheduler.placing import Attempt
    from muster.scheduler.task import Shape, TaskInfo

MOST_HOLDERS = 5
HELD_FOR_OTHERS = "the room that it would take is held for another gang"
MOST_EMPTIED = 100
"""So many gangs are tried on nodes as if those were empty."""
WORK = 100_000
"""How many nodes may be looked at to find suggestions, in all; the gangs that go first get theirs first."""


@dataclass(frozen=True, slots=True)
class Members:
    """How many members of a gang have or would find a node, how many are needed, and what is said of the others.

    `failing` is by name, one pod of each kind that finds none, companions among them.
    """

    fitting: int
    needed: int
    failing: Mapping[str, str]


def _about_nodes(reason: Reason | None) -> bool:
    """Whether nodes were asked, and had no room."""
    if reason is not None and reason.code is Code.CLUSTER_OVERCOMMIT:
        return bool(reason.nodes)
    return reason is not None and reason.code is Code.NOT_ENOUGH_NODES


def _asks_to_be_admitted(job: JobInfo) -> bool:
    """Whether what admitted gangs were promised and do not use yet is in its way."""
    return job.phase is Phase.PENDING and job.min_resources is not None


class Inquiry:
    """Questions about one model, as it is after a cycle. `work` bounds what is spent on suggestions."""

    def __init__(
        self, cache: SchedulerCache, configuration: SchedulerConfiguration, now: float, *, work: int = WORK
    ) -> None:
        self._cache = cache
        self._now = now
        self.session = Session(cache, framework_of(cache, configuration), configuration, now)
        self._positions: dict[str, int] | None = None
        self._holders: dict[object, tuple[Holder, ...]] = {}
        self._takes_anything = takes_anything(self.session)
        self._taken: dict[object, bool] = {}
        self._work = work
        self._too_few: dict[object, int] | None = None
        self._trials = Trials(self.session, max(20, work // max(1, len(cache.nodes))))

    def full_reason(self, job: JobInfo) -> Reason | None:
        """The gang's reason with all that can be said about it; None when it does not wait."""
        reason = job.reason
        if reason is None:
            return None
        reason = self._beside_others(job, self._if_empty(job, self._with_amounts(job, reason)))
        position = self.position(job)
        return replace(
            reason,
            position=position,
            ahead=None if position is None else position - 1,
            waited=None if reason.since is None else max(0, int(self._now - reason.since)),
            holders=tuple(self._with_rights(job, each) for each in self._who_has(job, reason)),
            suggestion=suggest(self._trials, job, reason),
        )

    def _if_empty(self, job: JobInfo, reason: Reason) -> Reason:
        """With the word that waiting does not help, where it does not."""
        if not _about_nodes(reason):
            return reason
        if self._too_few is None:
            others = (each for each in self._cache.jobs.values() if each is not job and _about_nodes(each.reason))
            asked = [job, *islice(others, MOST_EMPTIED)] if len(self._cache.tasks) <= self._work else []
            with self._trials.undone():
                self._too_few = too_few_if_empty(self.session, asked)
        found = self._too_few.get(gang_key(job))
        return reason if found is None else replace(reason, have_if_empty=found, need=job.min_member)

    def members(self, job: JobInfo) -> Members:
        """How many of the gang's members find a node now, whatever quota says, and what the others lack."""
        tasks = self.session.sort_tasks(
            task for task in job.pending.values() if task.schedulable and not job.is_companion(task)
        )
        with self._trials.undone():
            attempt = self.session.holds.place(job, partial(find_places, self.session, job, tasks, quota=False))
            attempt.statement.discard()
            with self.session.holds.lifted_for(job):
                failing = self._failing(job, tasks, attempt)
        return Members(job.ready + attempt.members, max(job.min_member, job.ready), failing)

    def _failing(self, job: JobInfo, tasks: list[TaskInfo], attempt: Attempt) -> dict[str, str]:
        if attempt.reserved is not None:
            return {tasks[0].spec.name: HELD_FOR_OTHERS} if tasks else {}
        failing = {
            task.spec.name: describe_nodes(survey_nodes(self.session, task.shape)) for task in attempt.short.values()
        }
        for shape, reason in attempt.denied.items():
            task = next((each for each in tasks if each.shape.id == shape), None)
            failing[reason.member or (task.spec.name if task is not None else "")] = reason.detail or describe(reason)
        held = held_back(job)
        if held:
            failing[held[0].spec.name] = held_by(held[:1])
        return failing

    def position(self, job: JobInfo) -> int | None:
        """Which of the waiting gangs of its queue it is, from 1; None for one that would not be placed anyway."""
        if self._positions is None:
            self._positions = self._all_positions()
        return self._positions.get(job.key)

    def _all_positions(self) -> dict[str, int]:
        positions: dict[str, int] = {}
        for queue in self._cache.queues.values():
            waiting = [
                job for job in queue.jobs.values() if job.reason is not None and job.reason.reason_class.for_room
            ]
            waiting.sort(key=self.session.job_key)
            positions.update((job.key, number) for number, job in enumerate(waiting, 1))
        return positions

    def _with_amounts(self, job: JobInfo, reason: Reason) -> Reason:
        """Where room is held for another gang: what this one asks for, in what that one asks for most of."""
        hold = self._hold_in_the_way(job) if reason.code is Code.ROOM_RESERVED else None
        if hold is None:
            return reason
        whole = self._cache.total
        resource = max(whole.dimensions(), key=lambda name: (share(hold.need.get(name), whole.get(name)), name == CPU))
        asked = sum(task.request.get(resource) for task in job.pending.values() if task.schedulable)
        return replace(reason, resource=resource, requested=asked)

    def _beside_others(self, job: JobInfo, reason: Reason) -> Reason:
        """Where it is larger than a queue's capability: what others hold of that, used or promised, and who holds most.

        A queue may serve many tenants: of other namespaces no gang is named.
        """
        if reason.code is not Code.LARGER_THAN_QUEUE or reason.resource is None or reason.limit is None:
            return reason
        asks, held = _asks_to_be_admitted(job), Counter[str]()
        for other in self._cache.jobs.values():
            if other is not job and reason.queue in other.queue.lineage:
                promised = other.contribution.inqueue.get(reason.resource) if asks else 0
                held[other.key] = other.allocated.get(reason.resource) + promised
        used = held.total()
        most = min(held, key=lambda key: (-held[key], key), default="")
        same = most.partition("/")[0] == job.key.partition("/")[0]
        who = f"PodGroup {most}" if same else "gangs of other namespaces"
        return replace(reason, used=used, free=max(0, reason.limit - used), detail=who if used else "")

    def _hold_in_the_way(self, job: JobInfo) -> Hold | None:
        return next((hold for hold in self._cache.holds if hold.job is not job), None)

    # --- who has the room ---

    def _who_has(self, job: JobInfo, reason: Reason) -> tuple[Holder, ...]:
        resource = reason.resource
        if resource is None:
            return ()
        if reason.reason_class is ReasonClass.QUOTA and reason.queue is not None:
            asks = _asks_to_be_admitted(job)
            key = (reason.queue, resource, asks)
            return self._remembered(key, lambda: self._in_queue(reason.queue or "", resource, promised=asks))
        if reason.code is Code.CLUSTER_OVERCOMMIT:
            return self._remembered(resource, lambda: self._on_nodes(None, resource))
        if reason.reason_class is ReasonClass.ROOM:
            shape = next((task.shape for task in job.pending.values() if task.spec.name == reason.member), None)
            refused = self._refused_makes(shape)
            return self._remembered((refused, resource), lambda: self._on_nodes(refused, resource))
        hold = self._hold_in_the_way(job) if reason.code is Code.ROOM_RESERVED else None
        if hold is None:
            return ()
        return (Holder(hold.job.key, hold.job.queue.name, hold.need.get(resource), held=True),)

    def _with_rights(self, job: JobInfo, holder: Holder) -> Holder:
        """The holder as the gang sees it: whether what it has can be taken back for this one."""
        other = self._cache.jobs.get(holder.pod_group)
        if other is None or holder.held or not self._takes_anything:
            return holder
        key = (gang_key(job), job.key if job.key in self._cache.rivals.losers else "", holder.pod_group)
        if key not in self._taken:
            self._taken[key] = can_be_taken(self.session, job, other)
        return replace(holder, reclaimable=self._taken[key])

    def _remembered(self, key: object, find: Callable[[], tuple[Holder, ...]]) -> tuple[Holder, ...]:
        known = self._holders.get(key)
        if known is None:
            known = self._holders[key] = find()
        return known

    def _refused_makes(self, shape: Shape | None) -> frozenset[int]:
        """The makes of nodes that would not take the pod if they were empty: who is there is not in its way."""
        if shape is None:
            return frozenset()
        view = self._cache.index.view(shape)
        return frozenset(make.id for make in self._cache.index.makes.values() if view.refusal(make) is not None)

    def _in_queue(self, name: str, resource: str, *, promised: bool) -> tuple[Holder, ...]:
        """`promised`: what admitted gangs do not use yet counts too, as it does when one asks to be admitted."""
        jobs = [job for job in self._cache.jobs.values() if name in job.queue.lineage]
        used = [Holder(job.key, job.queue.name, job.allocated.get(resource)) for job in jobs]
        if promised:
            used += [Holder(job.key, job.queue.name, job.contribution.inqueue.get(resource), held=True) for job in jobs]
        found = sorted((each for each in used if each.amount > 0), key=lambda each: (-each.amount, each.pod_group))
        return tuple(found[:MOST_HOLDERS])

    def _on_nodes(self, refused: frozenset[int] | None, resource: str) -> tuple[Holder, ...]:
        amounts: Counter[str] = Counter()
        others = 0
        for bucket in self._cache.index.filled_buckets():
            if refused is not None and bucket.make.id in refused:
                continue
            for node in bucket.members.values():
                for task in node.tasks.values():
                    if not task.status.holds:
                        continue
                    if task.job is None:
                        others += task.request.get(resource)
                    else:
                        amounts[task.job.key] += task.request.get(resource)
        return self._largest(amounts, elsewhere=others)

    def _largest(self, amounts: Counter[str], elsewhere: int) -> tuple[Holder, ...]:
        """The largest, and, last, what pods have that are not ours."""
        found = sorted(((amount, key) for key, amount in amounts.items() if amount > 0), key=lambda e: (-e[0], e[1]))
        holders = [self._holder(key, amount) for amount, key in found[:MOST_HOLDERS]]
        if elsewhere > 0:
            holders.append(Holder("", "", elsewhere))
        return tuple(holders)

    def _holder(self, key: str, amount: int) -> Holder:
        return Holder(key, self._cache.jobs[key].queue.name, amount)
