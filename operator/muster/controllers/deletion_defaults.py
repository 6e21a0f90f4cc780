"""What an administrator says about finished RayJobs of which their owners say nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeletionDefaults:
    """`delete_jobs` deletes the RayJob where `shutdownAfterJobFinishes` would delete the cluster.

    `cluster_ttl` is how long, in seconds, a cluster is kept of which nobody says when it goes; None: for ever.
    """

    delete_jobs: bool = False
    cluster_ttl: float | None = None
