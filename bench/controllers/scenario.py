"""What is asked of a system: so many objects of a kind, and when one of them is where it should be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from bench.controllers.manifests import ray_cluster, ray_job
from muster.kube.objects import ApiObject
from muster.kube.resource import RAYCLUSTERS, RAYJOBS, Resource


class Kind(StrEnum):
    """The scenarios."""

    CLUSTERS = "clusters"
    JOBS = "jobs"


class Status(msgspec.Struct, rename="camel"):
    """What is read of the status of a RayCluster or RayJob."""

    state: str = ""
    job_deployment_status: str = ""
    job_status: str = ""
    reason: str = ""
    message: str = ""

    def __str__(self) -> str:
        """All that it says, in its own words."""
        said = (self.state, self.job_deployment_status, self.job_status, self.reason, self.message)
        return ", ".join(filter(None, said)) or "without a status"


class RayObject(ApiObject, frozen=True):
    """A RayCluster or RayJob, as far as it is watched."""

    status: Status = msgspec.field(default_factory=Status)


@dataclass(frozen=True, slots=True)
class Scenario:
    """So many of a kind. `job_seconds` is how long a job runs."""

    kind: Kind
    count: int
    job_seconds: float = 10.0

    @property
    def resource(self) -> Resource:
        """The kind of the objects."""
        return RAYCLUSTERS if self.kind is Kind.CLUSTERS else RAYJOBS

    @property
    def names(self) -> list[str]:
        """The names of the objects that are measured."""
        return [f"c{index:05d}" for index in range(self.count)]

    def manifest(self, name: str, dashboard_port: int) -> dict[str, Any]:
        """The object of this name."""
        return ray_cluster(name) if self.kind is Kind.CLUSTERS else ray_job(name, dashboard_port)

    def is_there(self, one: RayObject) -> bool:
        """Whether the object is where it should get to."""
        if self.kind is Kind.CLUSTERS:
            return one.status.state == "ready"
        return one.status.job_deployment_status == "Complete" and one.status.job_status == "SUCCEEDED"

    def has_failed(self, one: RayObject) -> bool:
        """Whether the object will never get there."""
        ended = one.status.job_deployment_status in ("Complete", "Failed", "ValidationFailed")
        return self.kind is Kind.JOBS and ended and not self.is_there(one)
