"""What can be counted about the controllers, as of the moment of the question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muster.controllers.context import Context, ObservedRayCluster
from muster.controllers.job_figures import JobFigures
from muster.controllers.runner import Runner
from muster.kube.objects import PodGroup


@dataclass(frozen=True, slots=True)
class ControllerFigures:
    """The objects that are known, and the loops that work on them."""

    ray_clusters: Sequence[ObservedRayCluster]
    ray_jobs: Sequence[JobFigures]
    pod_groups: Sequence[PodGroup]
    runners: Sequence[Runner]

    @classmethod
    def of(cls, context: Context, runners: Sequence[Runner]) -> ControllerFigures:
        """What there is now."""
        return cls(
            ray_clusters=context.ray_clusters.informer.list(),
            ray_jobs=list(context.known_jobs),
            pod_groups=context.pod_groups.informer.list(),
            runners=runners,
        )
