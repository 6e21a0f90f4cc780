"""What the extender is asked about tasks: nodes for them, victims for them, and what it is told of their places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from muster.scheduler.constraints import PodConstraints
from muster.scheduler.judge import NodeCheck, NodeWish
from muster.scheduler.node import NodeInfo
from muster.scheduler.plugins.extender import answers
from muster.scheduler.plugins.extender.calls import Calls, Question, Silence
from muster.scheduler.plugins.extender.findings import Findings
from muster.scheduler.plugins.extender.options import ExtenderOptions, Point
from muster.scheduler.plugins.extender.papers import Papers, listed, task_paper, together
from muster.scheduler.plugins.extender.refusals import NOT_ASKED, refused
from muster.scheduler.reasons import Code
from muster.scheduler.task import Shape

if TYPE_CHECKING:
    from muster.scheduler.cache import SchedulerCache
    from muster.scheduler.evictable import Evictable, Permitted
    from muster.scheduler.queue import QueueInfo
    from muster.scheduler.reasons import Reason
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

T = TypeVar("T")

_REFUSES = "node(s) that the scheduler's extender refuses"
_UNASKABLE = "node(s) about which the scheduler's extender can't be asked"


class TaskPoints:
    """The points that ask about one task at a time."""

    def __init__(self, options: ExtenderOptions, calls: Calls, findings: Findings) -> None:
        self._options = options
        self._calls = calls
        self._findings = findings
        self._cache: SchedulerCache | None = None
        self._shapes: dict[int, Shape] = {}
        self._papers = Papers()

    def attach(self, cache: SchedulerCache) -> None:
        """Learn where tasks are found."""
        self._cache = cache

    def end(self) -> None:
        """Forget how the nodes looked to shapes that nobody shares: it would be kept for each pod that waits."""
        if self._cache is not None:
            for shape in self._shapes.values():
                self._cache.index.forget(shape)
        self._shapes.clear()
        self._papers.clear()

    def outlook(self, task: TaskInfo, _queues: Mapping[str, QueueInfo], constraints: PodConstraints) -> PodConstraints:
        """A pod that is asked about shares its shape with nobody. A placeholder is no pod yet."""
        if task.companion or not task.spec.ours:
            return constraints
        if Point.JOB_READY not in self._options.verbs and not self._minds(task):
            return constraints
        return replace(constraints, individual=task.uid)

    def _minds(self, task: TaskInfo) -> bool:
        """Whether the task asks for something that the extender manages."""
        managed, spec = self._options.managed, task.spec
        return not managed or any(spec.request.get(name) or spec.init_request.get(name) for name in managed)

    def _task_of(self, shape: Shape) -> TaskInfo | None:
        uid = shape.scheduling.individual
        task = self._cache.tasks.get(uid) if self._cache is not None and uid else None
        if task is None or task.job is None or not self._minds(task):
            return None
        self._shapes[shape.id] = shape
        return task

    def _ask(self, point: Point, task: TaskInfo, question: Question, read: Callable[[answers.Body], T]) -> T | Silence:
        found = self._calls.ask(point, question, read, task.job.key if task.job is not None else None)
        if isinstance(found, Silence) and found.reason is not None:
            self._findings.task(task, found.reason)
        return found

    # --- nodes ---

    def hurdle(self, shape: Shape) -> Reason | None:
        """Spares the nodes the question when it can't be asked anyway."""
        task = self._task_of(shape)
        if task is None or task.job is None:
            return None
        silence = self._calls.silence(task.job.key)
        if silence is None or silence.reason is None:
            return None
        self._findings.task(task, silence.reason)
        return silence.reason

    def check(self, shape: Shape, _later: bool) -> NodeCheck | None:
        """`predicate`."""
        task = self._task_of(shape)
        return None if task is None else lambda node: self._objection(task, node)

    def _objection(self, task: TaskInfo, node: NodeInfo) -> str | None:
        why = self._ask(
            Point.PREDICATE,
            task,
            lambda: together(task=task_paper(task), node=self._papers.node(node)),
            answers.refusal,
        )
        if isinstance(why, Silence):
            if why.reason is None:
                return None
            return NOT_ASKED if why.reason.code is Code.WAITING_FOR_TURN else _UNASKABLE
        if why:
            self._findings.refused(task.job)
        return f"{_REFUSES}: {why}" if why else None

    def wish(self, shape: Shape, _later: bool) -> NodeWish | None:
        """`prioritize`."""
        task = self._task_of(shape)
        return None if task is None else lambda nodes: self._points(task, nodes)

    def _points(self, task: TaskInfo, nodes: Sequence[NodeInfo]) -> Sequence[float] | None:
        nothing = [0.0] * len(nodes)
        if len(nodes) < 2:
            return nothing  # there is nothing to choose, and Volcano does not ask then
        found = self._ask(
            Point.PRIORITIZE,
            task,
            lambda: together(task=task_paper(task), nodes=listed(map(self._papers.node, nodes))),
            answers.scores,
        )
        if isinstance(found, Silence):
            return nothing if found.reason is None else None
        if found.refusal:
            self._findings.task(task, refused(found.refusal, member=task.spec.name))
            return None
        return [float(found.points.get(node.name, 0.0)) for node in nodes]

    # --- victims ---

    def evictable(self, point: Point) -> Evictable:
        """`preemptable` or `reclaimable`."""

        def permitted(_session: Session, evictor: TaskInfo, candidates: Sequence[TaskInfo]) -> Permitted:
            return self._victims(point, evictor, candidates)

        return permitted

    def _victims(self, point: Point, evictor: TaskInfo, candidates: Sequence[TaskInfo]) -> Permitted:
        if evictor.companion or not self._minds(evictor):
            return None
        found = self._calls.ask(
            point,
            lambda: together(evictor=task_paper(evictor), evictees=listed(map(task_paper, candidates))),
            answers.victims,
            evictor.job.key if evictor.job is not None else None,
        )
        if isinstance(found, Silence):
            if found.reason is None:
                return None
            self._findings.plan(evictor.job, found.reason)  # what it waits for is room all the same
            return []
        if found is None:
            return None
        permitted = [each for each in candidates if each.uid in found]
        if len(permitted) < len(candidates):
            self._findings.refused(evictor.job)
        return permitted

    # --- places ---

    def allocated(self, _session: Session, task: TaskInfo) -> Reason | None:
        """`allocateFunc`."""
        if not self._minds(task) or task.job is None:
            return None
        found = self._calls.tell(
            Point.ALLOCATE, lambda: together(task=task_paper(task)), answers.complaint_in, task.job.key
        )
        if isinstance(found, Silence):
            reason = found.reason
        else:
            reason = refused(found, member=task.spec.name) if found else None
        if reason is not None:
            self._findings.task(task, reason)
        return reason

    def deallocated(self, _session: Session, task: TaskInfo, node: str) -> None:
        """`deallocateFunc`; what it says to that changes nothing."""
        if self._minds(task):
            self._calls.tell(Point.DEALLOCATE, lambda: together(task=task_paper(task, node)), answers.complaint_in)
