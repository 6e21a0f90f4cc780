"""Dominant resource fairness: of two jobs the one that uses the smaller part of the cluster goes first.

A job's share is the largest of its shares in any resource (Ghodsi et al., NSDI 2011). Shares are only compared, never
accumulated, so a quotient of two exact integers is precise enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin
from muster.scheduler.resources import dominant_share

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session


def _job_share(session: Session, job: JobInfo) -> float:
    return dominant_share(job.allocated, session.cache.total)


class DominantResourceFairness(Plugin):
    """Volcano's `drf`, flat (enableHierarchy is refused when the configuration is read)."""

    name: ClassVar[str] = "drf"

    def register(self, points: ExtensionPoints) -> None:
        """Orders jobs."""
        points.add("job_order", _job_share)
