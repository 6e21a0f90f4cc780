"""Which RayCluster a RayJob runs on, where it brings none of its own."""

from __future__ import annotations

from muster.api.rayjob import RayJob
from muster.ray import labels


def runs_elsewhere(job: RayJob) -> bool:
    """Whether the job runs on a cluster that others made. Such a cluster is never changed, suspended or deleted."""
    return bool(job.spec.cluster_selector)


def selected_cluster(job: RayJob) -> str | None:
    """The name that `spec.clusterSelector` gives; None where it gives none."""
    return (job.spec.cluster_selector or {}).get(labels.CLUSTER) or None
