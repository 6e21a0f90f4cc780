"""Dominant resource fairness: of two jobs the one that uses the smaller part of the cluster goes first.

A job's share is the largest of its shares in any resource (Ghodsi et al., NSDI 2011). Shares are only compared, never
accumulated, so a quotient of two exact integers is precise enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.plugins.hdrf import ShareTree
from muster.scheduler.resources import Resources, dominant_share

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session
    from muster.scheduler.task import TaskInfo

SHARE_DELTA = 1e-6
"""Shares that differ by no more count as equal (Volcano's tolerance)."""


def _job_share(session: Session, job: JobInfo) -> float:
    return dominant_share(job.allocated, session.cache.total)


class DominantResourceFairness(Plugin):
    """Volcano's `drf`; with `enableHierarchy` it orders queues, too."""

    name: ClassVar[str] = "drf"

    def __init__(self, arguments: dict[str, object]) -> None:
        super().__init__(arguments)
        self._tree: ShareTree | None = None
        self._made_for: object = None

    def register(self, points: ExtensionPoints) -> None:
        """Orders jobs; a job makes room for one whose share stays no larger than its own even so."""
        points.add("job_order", _job_share)
        points.add("preemptable", _larger_share)
        if points.flag("enableHierarchy", default=False):
            points.add("queue_order", lambda session, left, right: self._shares(session).compare(left, right))
            points.add("reclaimable", self._poorer_branch)

    def _shares(self, session: Session) -> ShareTree:
        """The tree of the queues, made anew when those or the cluster have changed."""
        cache = session.cache
        made_for = (cache.total.key(), cache.tree_version)
        if self._tree is None or made_for != self._made_for:
            self._tree, self._made_for = ShareTree(cache), made_for
        return self._tree

    def _poorer_branch(
        self, session: Session, reclaimer: TaskInfo, candidates: Sequence[TaskInfo]
    ) -> Sequence[TaskInfo] | None:
        """Tasks whose queue would still come after the reclaimer's had it given this task up (each for itself)."""
        job, tree = reclaimer.job, self._shares(session)
        if job is None:
            return None
        return [
            task
            for task in candidates
            if task.job is not None and tree.gives_back(job, reclaimer.request, task.job, task.request)
        ]


def _larger_share(session: Session, preemptor: TaskInfo, candidates: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Tasks of jobs whose share without them, and without those before them, is at least the preemptor's with its."""
    whole = session.cache.total
    mine = dominant_share(_held(preemptor).plus(preemptor.request), whole)
    left: dict[str, Resources] = {}
    victims = []
    for task in candidates:
        if task.job is None:
            continue
        rest = left.get(task.job.key)
        if rest is None:
            rest = left[task.job.key] = task.job.allocated.clone()
        rest.sub(task.request)
        if mine <= dominant_share(rest, whole) + SHARE_DELTA:
            victims.append(task)
    return victims


def _held(task: TaskInfo) -> Resources:
    return task.job.allocated if task.job is not None else Resources()
