"""A job: a PodGroup and the pods that name it.

Counts by status and role are kept as tasks change, so that "is this gang ready" costs nothing. Members are the pods
of the gang proper; a companion (the submitter) belongs to the job and is charged to its queue, but is no member: it
is counted neither by minMember nor by the phase.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from muster.scheduler.outcome import PodGroupStatus
from muster.scheduler.parking import Group, Parking
from muster.scheduler.queue import QueueInfo
from muster.scheduler.reasons import Reason
from muster.scheduler.resources import Resources
from muster.scheduler.specs import Condition, Phase, PodGroupSpec, TaskStatus, Wait
from muster.scheduler.task import TaskInfo

_STATUSES = len(TaskStatus)
_PENDING = TaskStatus.PENDING.index
_READY = tuple(each.index for each in TaskStatus if each.placed or each is TaskStatus.SUCCEEDED)
_PLACED = tuple(each.index for each in TaskStatus if each.placed)
_VALID = (*_READY, TaskStatus.PIPELINED.index, _PENDING)
_NOTHING = Resources()


class JobInfo:
    """Accounts and state of one gang. Changed only by the cache and the cycle.

    `allocated` is what its charged tasks use, `asked` what those ask for that could be placed, `gated` those that
    others hold back, `requested` all its pods; `version` counts changes of accounts.

    `light` counts the members that wait and ask for nothing. `held_min` is the minimum that the gang met last: below it
    the gang is broken. `lost` are the members, by role, that have a node which was deleted: they count as placed until
    they are deleted too, but not for this. `inqueue_since` is when it was admitted, `reservation_expired` that it gave
    its reservation back (P7), `former_places` (role to node) where companions had room until it ended or Muster did,
    `never` why it can't be placed at all, `wait` since when it waits. `terms` is another
    object whenever what the gang asks for has changed. `told` is what was said of pods without a PodGroup.
    `wanting_nodes` are the shapes (by id) that more nodes would help, each with how many of its tasks fit as it is.
    """

    __slots__ = (
        "allocated",
        "asked",
        "broken_since",
        "companion_roles",
        "conditions",
        "contribution",
        "counts",
        "former_places",
        "gated",
        "group",
        "held_min",
        "inqueue_since",
        "key",
        "light",
        "lost",
        "never",
        "parked",
        "pending",
        "phase",
        "placeholders",
        "priority",
        "published",
        "queue",
        "reason",
        "requested",
        "reservation_expired",
        "role_counts",
        "shape_key",
        "spec",
        "synthetic",
        "tasks",
        "terms",
        "told",
        "version",
        "wait",
        "wanting_nodes",
    )

    def __init__(self, key: str, queue: QueueInfo) -> None:
        self.key = key
        self.queue = queue
        self.spec: PodGroupSpec | None = None
        self.synthetic = False
        self.priority = 0
        self.tasks: dict[str, TaskInfo] = {}
        self.pending: dict[str, TaskInfo] = {}
        self.placeholders: dict[str, TaskInfo] = {}
        self.companion_roles: frozenset[str] = frozenset()
        self.allocated = Resources()
        self.asked = Resources()
        self.gated = Resources()
        self.requested = Resources()
        self.version = 0
        self.contribution: Contribution = NO_CONTRIBUTION
        self.shape_key: object = None
        self._clear_counts()
        self.clear_state()

    def __repr__(self) -> str:
        return f"JobInfo({self.key})"

    def clear_state(self) -> None:
        """Start as a PodGroup never seen before."""
        self.terms = object()
        self.phase = Phase.PENDING
        self.conditions: tuple[Condition, ...] = ()
        self.reason: Reason | None = None
        self.told: Reason | None = None
        self.published: PodGroupStatus | None = None
        self.held_min = 0
        self.broken_since: float | None = None
        self.lost: Counter[str] = Counter()
        self.former_places: dict[str, str] = {}
        self.inqueue_since: float | None = None
        self.reservation_expired = False
        self.never: Reason | None = None
        self.wait: Wait | None = None
        self.parked: Parking | None = None
        self.group: Group | None = None
        self.wanting_nodes: dict[int, int] = {}

    # --- identity and order ---

    @property
    def age_order(self) -> tuple[float, str, str]:
        """The last word of every order: creation, uid, name."""
        spec = self.spec
        return (spec.creation, spec.uid, self.key) if spec else (0.0, "", self.key)

    @property
    def min_member(self) -> int:
        """The gang's minimum, never negative."""
        return max(0, self.spec.min_member) if self.spec else 0

    @property
    def min_resources(self) -> Resources | None:
        """What enqueue asks for; None means always admitted."""
        return self.spec.min_resources if self.spec else None

    def runtime_of(self, task: TaskInfo) -> float | None:
        """How many seconds the task is said to run; None when nobody says."""
        own = task.spec.expected_runtime
        return own if own is not None or self.spec is None else self.spec.expected_runtime

    def expected_runtime(self) -> float | None:
        """How many seconds the members that wait are said to run at most; None when that of one is not known."""
        longest = 0.0
        for task in self.pending.values():
            runtime = self.runtime_of(task)
            if runtime is None:
                return None
            longest = max(longest, runtime)
        return longest

    # --- counts ---

    def count(self, status: TaskStatus) -> int:
        """Members in this status."""
        return self.counts[status.index]

    @property
    def ready(self) -> int:
        """Members that have a node or have succeeded."""
        counts = self.counts
        return sum(counts[index] for index in _READY)

    @property
    def placed(self) -> int:
        """Members that hold a node and are not leaving."""
        counts = self.counts
        return sum(counts[index] for index in _PLACED)

    @property
    def waiting(self) -> int:
        """Members that are pipelined."""
        return self.counts[TaskStatus.PIPELINED.index]

    @property
    def valid(self) -> int:
        """Members that could make up the gang: placed, succeeded, pipelined or pending."""
        counts = self.counts
        return sum(counts[index] for index in _VALID)

    @property
    def members(self) -> int:
        """All members."""
        return sum(self.counts)

    def role_minimums(self) -> Iterator[tuple[str, int]]:
        """The roles' own minimums; none apply when together they ask for more than the gang does (Volcano's rule)."""
        if self.spec is None or not self.spec.min_task_member:
            return
        minimums = self.spec.min_task_member
        if self.min_member < sum(minimums.values()):
            return
        yield from ((role, least) for role, least in sorted(minimums.items()) if least > 0)

    def count_role(self, role: str, indexes: tuple[int, ...]) -> int:
        """Members of a role in these statuses (by index)."""
        counts = self.role_counts.get(role)
        return sum(counts[index] for index in indexes) if counts else 0

    def placed_of(self, role: str) -> int:
        """Members of a role that have a node or have succeeded."""
        return self.count_role(role, _READY)

    def valid_of(self, role: str) -> int:
        """Members of a role that could make up its part of the gang."""
        return self.count_role(role, _VALID)

    def is_ready(self) -> bool:
        """Whether the minimum has nodes now: minMember and every role. Pods that ask for nothing are not let off."""
        if self.ready < self.min_member:
            return False
        return all(self.count_role(role, _READY) >= least for role, least in self.role_minimums())

    def is_pipelined(self) -> bool:
        """Whether the minimum has nodes now or will once leaving pods are gone."""
        if self.ready + self.waiting < self.min_member:
            return False
        soon = (*_READY, TaskStatus.PIPELINED.index)
        return all(self.count_role(role, soon) >= least for role, least in self.role_minimums())

    def short_role(self) -> tuple[str, int, int] | None:
        """The first role with too few pods: (role, have, need)."""
        for role, least in self.role_minimums():
            have = self.valid_of(role)
            if have < least:
                return role, have, least
        return None

    def is_valid(self) -> bool:
        """Whether enough pods exist."""
        return self.valid >= self.min_member and self.short_role() is None

    def all_tasks(self) -> Iterator[TaskInfo]:
        """Pods and placeholders."""
        yield from self.tasks.values()
        yield from self.placeholders.values()

    def companions_pending(self) -> list[TaskInfo]:
        """Placeholders and companion pods that have no node yet, in the order of roles."""
        waiting = [task for task in self.placeholders.values() if task.status is TaskStatus.PENDING]
        if self.companion_roles:
            waiting += [task for task in self.pending.values() if self.is_companion(task) and task.schedulable]
        return sorted(waiting, key=lambda task: (task.role, task.order))

    def is_companion(self, task: TaskInfo) -> bool:
        """Whether the task is of a companion's role."""
        return task.companion or task.spec.role in self.companion_roles

    # --- accounts, called by the cache ---

    def account(self, task: TaskInfo, sign: int) -> None:
        """Add (1) or take away (-1) what the task's present status means for job and queue."""
        status = task.status
        if not (self.companion_roles and self.is_companion(task)) and not task.companion:
            self.counts[status.index] += sign
            self._role_counts_of(task.spec.role)[status.index] += sign
        change = Resources.add if sign > 0 else Resources.sub
        self.version += 1
        self.queue.version += 1
        request, devices = task.spec.request, task.shape.devices
        if devices is not None and (status.charged or (status is TaskStatus.RELEASING and task.node is not None)):
            self.queue.claims.count(devices.claims, sign, leaving=not status.charged)
        if status.charged:
            change(self.allocated, request)
            change(self.queue.allocated, request)
            for sums in self.queue.charged:
                change(sums.allocated, request)
        elif status is TaskStatus.PENDING:
            self._account_pending(task, sign)
        elif status is TaskStatus.RELEASING and task.node is not None:
            change(self.queue.releasing, request)
            for sums in self.queue.charged:
                change(sums.releasing, request)

    def _account_pending(self, task: TaskInfo, sign: int) -> None:
        change = Resources.add if sign > 0 else Resources.sub
        if task.held_back:
            change(self.gated, task.spec.request)
        elif task.spec.ours:
            change(self.asked, task.spec.request)
        if not task.companion:
            if task.shape.best_effort and not self.is_companion(task):
                self.light += sign
            if sign > 0:
                self.pending[task.spec.uid] = task
            else:
                del self.pending[task.spec.uid]

    def _role_counts_of(self, role: str) -> list[int]:
        counts = self.role_counts.get(role)
        if counts is None:
            counts = self.role_counts[role] = [0] * _STATUSES
        return counts

    def _clear_counts(self) -> None:
        self.counts = [0] * _STATUSES
        self.light = 0
        self.role_counts: dict[str, list[int]] = {}

    # --- reservations ---

    def compute_contribution(self) -> Contribution:
        """What the job adds to its queue's and the cluster's promises (reference: proportion, overcommit)."""
        minimum = self.min_resources
        elastic = self.allocated.exceeded(minimum or _NOTHING).without_pods()
        wanted = self.asked.clone() if self._could_be_placed() else _NOTHING
        empty = not self.min_member and not self.tasks
        if minimum is None or empty or self.reservation_expired or self.never is not None:
            return Contribution(_NOTHING, _NOTHING, elastic, wanted)
        rest = minimum.exceeded(self.allocated).exceeded(self.gated)
        if self.phase is Phase.INQUEUE:
            return Contribution(rest, minimum.exceeded(self.gated), elastic, wanted)
        if self.phase is Phase.RUNNING and self.placed >= self.min_member:
            return Contribution(rest, rest, elastic, wanted)
        return Contribution(_NOTHING, _NOTHING, elastic, wanted)

    def _could_be_placed(self) -> bool:
        """Whether the pods that wait would be placed if there were room and quota enough."""
        return self.spec is not None and not self.spec.problem and self.never is None and self.is_valid()


class Contribution:
    """A job's part in its queue's accounts and in promises.

    `inqueue` is promised to its queue, `promised` to the cluster, `elastic` is what it uses above its minimum, `wanted`
    what its waiting pods ask for: nothing as long as they could not be placed whatever they were given.
    """

    __slots__ = ("elastic", "inqueue", "promised", "wanted")

    def __init__(self, inqueue: Resources, promised: Resources, elastic: Resources, wanted: Resources) -> None:
        self.inqueue = inqueue
        self.promised = promised
        self.elastic = elastic
        self.wanted = wanted


NO_CONTRIBUTION = Contribution(Resources(), Resources(), Resources(), Resources())
