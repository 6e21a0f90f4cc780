"""What of a RayCluster's status is written at once, and what has to stand first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.controllers.raycluster.status import report_once_settled
from muster.controllers.settling import SETTLING, Settling
from muster.kube.objects import Pod
from muster.kube.resource import RAYCLUSTERS
from muster.ray import labels
from muster.ray.cluster_conditions import ReplicaFailure
from tests.controllers.fake_clock import FakeClock
from tests.controllers.observed_pods import pod
from tests.ray.ray_objects import ray_cluster, worker_group


class _Cluster:
    """Looks at one RayCluster of a head and a worker, one after the other."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.pods: list[Pod] = []
        self.patches: list[dict[str, Any]] = []
        self._context = SimpleNamespace(
            cluster_settling=Settling(self.clock),
            primaries={RAYCLUSTERS: self},
            pods_of=lambda _: self.pods,
            services=SimpleNamespace(get=lambda *_: None),
            clock=self.clock,
        )
        self._raw: dict[str, Any] = ray_cluster(workers=[worker_group("workers")]).dump()

    async def patch(self, raw: dict[str, Any], change: dict[str, Any], subresource: str) -> dict[str, Any]:
        """As the API server takes a status."""
        assert subresource == "status"
        self.patches.append(change["status"])
        self._raw = {**raw, "status": {**raw.get("status", {}), **change["status"]}}
        return self._raw

    async def look(self, failure: ReplicaFailure | None = None) -> float | None:
        cluster = RayCluster.parse(self._raw)
        return await report_once_settled(cast(Context, self._context), self._raw, cluster, failure)


HEAD, WORKER = pod("h", group=labels.HEAD_GROUP), pod("w")


async def test_a_cluster_that_is_ready_at_once_has_one_status() -> None:
    cluster = _Cluster()
    assert await cluster.look() == SETTLING
    cluster.pods = [HEAD]
    assert await cluster.look() == SETTLING
    cluster.pods = [HEAD, WORKER]
    assert await cluster.look() is None
    assert [patch.get("state") for patch in cluster.patches] == ["ready"]


async def test_what_lasts_is_written_though_the_times_in_it_are_new_at_each_look() -> None:
    cluster = _Cluster()
    cluster.pods = [HEAD]
    await cluster.look()
    await cluster.clock.advance(SETTLING / 2)
    assert await cluster.look() == SETTLING / 2
    await cluster.clock.advance(SETTLING / 2)
    assert await cluster.look() is None
    assert len(cluster.patches) == 1
    assert await cluster.look() is None
    assert len(cluster.patches) == 1


async def test_a_cluster_that_is_ready_no_more_says_so_at_once() -> None:
    cluster = _Cluster()
    cluster.pods = [HEAD, WORKER]
    await cluster.look()
    cluster.pods = [HEAD]
    assert await cluster.look() is None
    assert [patch.get("state") for patch in cluster.patches] == ["ready", ""]


async def test_a_failure_is_told_at_once() -> None:
    cluster = _Cluster()
    assert await cluster.look(ReplicaFailure("FailedCreateHeadPod", "no quota")) is None
    assert [patch["reason"] for patch in cluster.patches] == ["no quota"]
