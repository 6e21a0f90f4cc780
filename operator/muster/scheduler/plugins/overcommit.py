"""Admits gangs as long as the cluster's idle resources, a little stretched, cover what is promised.

idle = total times the factor, less what pods use; promised = the minimum of every admitted gang that does not run yet,
and what running gangs still lack of theirs.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from muster.scheduler.framework import ExtensionPoints, Plugin, Vote
from muster.scheduler.plugins.arguments import number
from muster.scheduler.reasons import Code, Reason, Wake

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.session import Session

DEFAULT_FACTOR = Fraction(12, 10)


class Overcommit(Plugin):
    """Volcano's `overcommit`; a factor below 1 means the default 1.2."""

    name: ClassVar[str] = "overcommit"
    arguments: ClassVar = {"overcommit-factor": number}

    def __init__(self, arguments: dict[str, Any]) -> None:
        factor: Fraction = arguments.get("overcommit-factor", DEFAULT_FACTOR)
        self.factor = factor if factor >= 1 else DEFAULT_FACTOR

    def register(self, points: ExtensionPoints) -> None:
        """Votes on admission."""
        points.add("job_enqueueable", self._enqueueable)

    def _enqueueable(self, session: Session, job: JobInfo) -> Vote:
        minimum = job.min_resources
        if minimum is None:
            return True
        cache = session.cache
        session.settle()
        stretched = cache.total.scaled(self.factor.numerator, self.factor.denominator)
        taken = cache.used.plus(cache.promised)
        lacking = taken.plus(minimum).violations(stretched, minimum)
        if not lacking:
            return True
        resource = lacking[0]
        return Reason(
            Code.CLUSTER_OVERCOMMIT,
            resource=resource,
            requested=minimum.get(resource),
            used=taken.get(resource),
            free=max(0, stretched.get(resource) - taken.get(resource)),
            limit=stretched.get(resource),
            wakes=(Wake.CLUSTER,),
            more_nodes_help=True,
        )
