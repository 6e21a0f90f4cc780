"""One pass over a cluster's pods, with an API server that refuses what the pass asks for."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

from muster.api.raycluster import RayCluster
from muster.controllers.dead_nodes import DeadNodes
from muster.controllers.raycluster.memory import ClusterMemory
from muster.controllers.raycluster.pods import CHANGED_SECONDS, ClusterPods
from muster.controllers.raycluster.quota import pods_within_quota
from muster.controllers.raycluster.quota_turns import QuotaTurns
from muster.kube.errors import Conflict
from muster.kube.informer import Informer
from muster.kube.objects import Node, Pod
from muster.kube.resource import NODES
from muster.ray.cluster_conditions import ReplicaFailure
from muster.ray.gang_membership import GangMembership
from muster.ray.labels import HEAD_GROUP
from muster.ray.pod_options import PodOptions
from tests.controllers.fake_clock import FakeClock
from tests.controllers.observed_pods import waiting

TEMPLATE = {"spec": {"containers": [{"name": "ray", "image": "ray:corrected"}]}}
CLUSTER = RayCluster.parse(
    {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "demo", "namespace": "default", "uid": "u"},
        "spec": {"headGroupSpec": {"rayStartParams": {}, "template": TEMPLATE}},
    }
)


class ChangedPods:
    """Each has changed since it was seen."""

    async def delete(self, *_: Any, unchanged: bool, **__: Any) -> bool:
        assert unchanged
        raise Conflict(409, "Conflict", "the pod has changed")


class Sources:
    """A context with these pods and no node."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self.clock = FakeClock()
        nodes: Informer[Node] = Informer(None, NODES, Node)  # type: ignore[arg-type]
        self.dead_nodes = DeadNodes(nodes, self.clock, 300.0)
        self.options = SimpleNamespace(pods=PodOptions(), random_pod_delete=False)
        self.pods = ChangedPods()
        self._present = list(pods)

    def say(self, *_: Any, **__: Any) -> None:
        pass

    def pods_of(self, _: RayCluster) -> list[Pod]:
        return self._present


async def test_a_pod_that_changed_before_it_could_be_replaced_is_looked_at_again() -> None:
    """The change may be none that a cluster is looked at for, as the loss of a gate."""
    sources = Sources([waiting("head", group=HEAD_GROUP, template="old")])
    memory = ClusterMemory("u", sources.clock, Random(1))
    outcome = await ClusterPods(sources, CLUSTER, memory, None).bring_about()  # type: ignore[arg-type]
    assert outcome.error is None
    now = sources.clock.now()
    assert outcome.look_again == [now + CHANGED_SECONDS]


async def test_a_pod_that_changed_before_a_quota_took_it_back_is_looked_at_again() -> None:
    sources = Sources([waiting("head", group=HEAD_GROUP)])
    memory, turns = ClusterMemory("u", sources.clock, Random(1)), QuotaTurns(sources.clock, Random(1))
    turn = turns.refused(CLUSTER, ReplicaFailure("FailedCreateHeadPod", "exceeded quota"))
    now = sources.clock.now()
    gang = GangMembership("demo", scheduler_name="muster", gate=None, queue=None, priority_class=None)
    outcome = await pods_within_quota(sources, CLUSTER, memory, gang, turns)  # type: ignore[arg-type]
    assert outcome.error is None
    assert sorted(outcome.look_again) == sorted({turn.until, now + CHANGED_SECONDS})
