from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from muster.engine.mirror import EngineInformers, Mirror
from muster.kube.events import ObjectReference
from muster.kube.malformed import MalformedObject
from muster.kube.objects import Node, Pod, PodGroup, PriorityClass, Queue
from muster.kube.policy_objects import PodDisruptionBudget, ResourceQuota
from muster.kube.resource import NODES, PODGROUPS
from muster.kube.store import Store
from muster.scheduler.specs import Phase
from tests.engine.pod_manifests import pod

GATE = "muster.dev/gang"


class Model:
    """Notes what a SchedulerCache was told, or raises `failure`."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.storage = self
        self.devices = self
        self.failure: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        def note(argument: Any) -> None:
            if self.failure is not None:
                raise self.failure
            self.told.append((name, argument))

        return note

    def calls(self) -> list[str]:
        found = [name for name, _ in self.told]
        self.told.clear()
        return found


class Cluster:
    """Stores in place of informers, the mirror on them, and what came of it."""

    def __init__(self) -> None:
        self.model = Model()
        self.wakes = 0
        self.events: list[tuple[str, str, str]] = []
        self.pods: Store[Pod] = Store("Pod")
        self.nodes: Store[Node] = Store("Node")
        self.pod_groups: Store[PodGroup] = Store("PodGroup")
        self.queues: Store[Queue] = Store("Queue")
        self.doubts: list[Exception] = []
        self.mirror = Mirror(
            cast(Any, self.model),
            cast(Any, self),
            self._wake,
            self.doubts.append,
            scheduler_names=("muster",),
            gate=GATE,
        )
        self.resource_quotas: Store[ResourceQuota] = Store("ResourceQuota")
        stores: list[Any] = [self.pods, self.nodes, self.pod_groups, self.queues, Store[PriorityClass]("PriorityClass")]
        self.disruption_budgets: Store[PodDisruptionBudget] = Store("PodDisruptionBudget")
        stores += [self.resource_quotas, self.disruption_budgets]
        self.mirror.attach(EngineInformers(*stores))

    def _wake(self) -> None:
        self.wakes += 1

    def event(self, about: ObjectReference, kind: str, reason: str, message: str, action: str) -> None:
        self.events.append((f"{about.kind} {about.name}", reason, message))

    def woken(self) -> bool:
        found, self.wakes = bool(self.wakes), 0
        return found


def pod_group(
    version: int, min_member: int = 1, min_resources: dict[str, Any] | None = None, **status: Any
) -> PodGroup:
    meta = {"name": "pg", "namespace": "ns", "uid": "u", "resourceVersion": str(version)}
    spec = {"minMember": min_member, "minResources": min_resources}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, type=PodGroup)


def queue(version: int, *, weight: int = 1, **status: Any) -> Queue:
    meta = {"name": "q", "resourceVersion": str(version)}
    return msgspec.convert({"metadata": meta, "spec": {"weight": weight}, "status": status}, type=Queue)


def node(version: int, cpu: str = "1", heartbeat: str = "") -> Node:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": heartbeat}
    meta = {"name": "n", "resourceVersion": str(version)}
    return msgspec.convert(
        {"metadata": meta, "status": {"allocatable": {"cpu": cpu}, "conditions": [condition]}}, type=Node
    )


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}
READY = {"type": "Ready", "status": "True"}

# what was there, what comes: what the model hears, and whether a cycle is due
POD_CHANGES: dict[str, tuple[Pod, Pod, list[str], bool]] = {
    "bound": (pod(), pod(node="n", version=2), ["set_task"], True),
    "our gate removed": (pod(gates=(GATE,)), pod(version=2), [], False),
    "another's gate removed": (pod(gates=("other",)), pod(version=2), ["set_task"], True),
    "ready": (pod(node="n"), pod(node="n", version=2, status={"conditions": [READY]}), [], False),
    "our own word on it": (pod(), pod(version=2, status={"conditions": [UNSCHEDULABLE]}), [], False),
    "succeeded": (pod(node="n"), pod(node="n", phase="Succeeded", version=2), ["set_task"], True),
    "going": (pod(node="n"), pod(node="n", deleted=True, version=2), ["set_task"], True),
    "made anew": (pod(), pod(uid="another", version=2), ["remove_task", "set_task"], True),
    "unreadable now": (pod(), pod(requests={"cpu": "x"}, version=2), ["remove_task"], True),
}


@pytest.mark.parametrize(("before", "after", "calls", "wakes"), POD_CHANGES.values(), ids=POD_CHANGES.keys())
def test_the_model_hears_of_a_pod_what_matters(before: Pod, after: Pod, calls: list[str], wakes: bool) -> None:
    cluster = Cluster()
    cluster.pods.put(before)
    assert (cluster.model.calls(), cluster.woken()) == (["set_task"], True)
    cluster.pods.put(after)
    assert (cluster.model.calls(), cluster.woken()) == (calls, wakes)


REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "rs", "controller": True}


def test_what_pods_of_one_controller_ask_for_is_held_once_whoever_of_them_goes() -> None:
    cluster = Cluster()
    for name in "abc":
        cluster.pods.put(pod(name, owner=REPLICA_SET, node="n"))
        if name == "b":
            cluster.pods.put(pod("a", owner=REPLICA_SET, node="n", phase="Running", version=2))
            cluster.pods.remove("default/a")
    cluster.pods.put(pod("d", owner=REPLICA_SET, node="n"))
    told = {spec.name: spec for call, spec in cluster.model.told if call == "set_task"}
    assert told["b"].request is told["a"].request
    assert told["b"].scheduling is told["a"].scheduling
    assert told["d"].request is told["c"].request


def test_pods_of_a_controller_that_let_go_of_one_are_read_right() -> None:
    cluster = Cluster()
    cluster.pods.put(pod("a", owner=REPLICA_SET, node="n"))
    cluster.pods.put(pod("a", node="n", version=2))
    cluster.pods.remove("default/a")
    cluster.pods.put(pod("b", owner=REPLICA_SET, node="n", requests={"cpu": "2"}))
    assert cluster.model.told[-1][1].request.milli_cpu == 2000


def test_a_deleted_pod_leaves_the_model() -> None:
    cluster = Cluster()
    cluster.pods.put(pod())
    cluster.pods.remove("default/p")
    assert cluster.model.told[-1] == ("remove_task", "uid-p")


def test_a_pod_that_is_none_of_our_business_is_not_mentioned() -> None:
    cluster = Cluster()
    cluster.pods.put(pod(scheduler="default-scheduler"))
    cluster.pods.remove("default/p")
    assert (cluster.model.calls(), cluster.woken()) == ([], False)


def test_another_s_pod_frees_its_node_when_it_ends() -> None:
    cluster = Cluster()
    cluster.pods.put(pod(scheduler="default-scheduler", node="n", phase="Running"))
    cluster.pods.put(pod(scheduler="default-scheduler", node="n", phase="Succeeded", version=2))
    assert cluster.model.calls() == ["set_task", "remove_task"]


def noted(group: PodGroup, **notes: str) -> PodGroup:
    annotations = {f"muster.dev/{key.replace('_', '-')}": text for key, text in notes.items()}
    return msgspec.structs.replace(group, metadata=msgspec.structs.replace(group.metadata, annotations=annotations))


PENDING: dict[str, Any] = {"phase": "Pending"}
CONDITION = {"type": "Unschedulable", "status": "True"}
GROUP_CHANGES: dict[str, tuple[PodGroup, list[str], bool]] = {
    "its spec": (pod_group(2, min_member=2, **PENDING), ["set_pod_group"], True),
    "its phase": (pod_group(2, phase="Inqueue"), ["set_pod_group"], True),
    "our condition": (pod_group(2, conditions=[CONDITION], **PENDING), ["set_pod_group"], False),
    "our notes": (
        noted(
            pod_group(2, **PENDING), minimum_met="1", broken_since="2026-01-01T00:00:00Z", companion_nodes='{"a":"n"}'
        ),
        ["set_pod_group"],
        False,
    ),
    "our counters": (pod_group(2, running=1, **PENDING), ["set_pod_group"], False),
    "nothing of it": (pod_group(2, **PENDING), [], False),
}


@pytest.mark.parametrize(("after", "calls", "wakes"), GROUP_CHANGES.values(), ids=GROUP_CHANGES.keys())
def test_the_model_hears_of_a_pod_group_what_matters(after: PodGroup, calls: list[str], wakes: bool) -> None:
    cluster = Cluster()
    cluster.pod_groups.put(pod_group(1, **PENDING))
    assert (cluster.model.calls(), cluster.woken()) == (["set_pod_group"], True)
    cluster.pod_groups.put(after)
    assert (cluster.model.calls(), cluster.woken()) == (calls, wakes)


def test_a_queue_s_account_is_no_news() -> None:
    cluster = Cluster()
    cluster.queues.put(queue(1))
    assert (cluster.model.calls(), cluster.woken()) == (["set_queue"], True)
    cluster.queues.put(queue(2, allocated={"cpu": "1"}))
    assert (cluster.model.calls(), cluster.woken()) == ([], False)
    cluster.queues.put(queue(3, weight=2, allocated={"cpu": "1"}))
    assert (cluster.model.calls(), cluster.woken()) == (["set_queue"], True)


def test_a_node_s_heartbeat_is_no_news() -> None:
    cluster = Cluster()
    cluster.nodes.put(node(1, heartbeat="2026-01-01T00:00:00Z"))
    assert cluster.woken()
    cluster.model.calls()
    cluster.nodes.put(node(2, heartbeat="2026-01-01T00:05:00Z"))
    assert (cluster.model.calls(), cluster.woken()) == ([], False)
    cluster.nodes.put(node(3, cpu="2"))
    assert (cluster.model.calls(), cluster.woken()) == (["set_node"], True)


def test_one_bad_object_is_named_and_the_others_go_on() -> None:
    cluster = Cluster()
    cluster.pods.put(pod("bad", requests={"cpu": "x"}))
    cluster.pods.put(pod("good"))
    assert [spec.name for _, spec in cluster.model.told] == ["good"]
    ((about, reason, message),) = cluster.events
    assert (about, reason) == ("Pod bad", "InvalidPod")
    assert message.startswith("spec.containers[0].resources.requests[cpu]:")


def test_a_bad_pod_group_is_named_and_stays_with_its_problem_until_it_is_mended() -> None:
    cluster = Cluster()
    cluster.pod_groups.put(pod_group(1, min_resources={"cpu": "lots"}))
    cluster.pod_groups.put(pod_group(2, min_resources={"cpu": "1"}))
    first, second = (spec for _, spec in cluster.model.told)
    assert first.problem.startswith("spec.minResources[cpu]:")
    assert second.problem == ""
    assert [event[:2] for event in cluster.events] == [("PodGroup pg", "InvalidPodGroup")]


def test_a_pod_group_that_cannot_be_read_is_named_and_stays_with_its_problem() -> None:
    cluster = Cluster()
    malformed = MalformedObject(PODGROUPS, "ns", "pg", "spec.minMember: Expected int, got str", "u", "1")
    cluster.mirror.on_malformed(malformed)
    ((call, spec),) = cluster.model.told
    assert (call, spec.key, spec.problem) == ("set_pod_group", "ns/pg", "spec.minMember: Expected int, got str")
    assert cluster.events == [("PodGroup pg", "InvalidPodGroup", "spec.minMember: Expected int, got str")]
    cluster.pod_groups.put(pod_group(2, phase="Pending"))
    assert cluster.model.told[-1][1].phase is Phase.PENDING


def test_a_pod_group_that_could_not_be_read_is_forgotten_when_it_is_deleted() -> None:
    cluster = Cluster()
    malformed = MalformedObject(PODGROUPS, "ns", "pg", "spec.minMember: Expected int, got str", "u", "1")
    cluster.mirror.on_malformed(malformed)
    cluster.mirror.on_malformed_deleted(malformed)
    cluster.mirror.on_malformed_deleted(malformed)
    assert cluster.model.calls() == ["set_pod_group", "remove_pod_group"]


def test_a_node_that_cannot_be_read_takes_nothing_and_is_not_lost_to_its_pods() -> None:
    cluster = Cluster()
    cluster.nodes.put(node(1))
    cluster.nodes.put(node(2, cpu="-1"))
    ((_, _), (call, spec)) = cluster.model.told
    assert (call, spec.name, spec.unschedulable, spec.allocatable.is_empty()) == ("set_node", "n", True, True)
    cluster.model.told.clear()
    malformed = MalformedObject(NODES, "", "n", "spec.taints: Expected array, got str", "u", "3")
    cluster.nodes.remove("n")
    cluster.mirror.on_malformed(malformed)
    assert cluster.model.calls() == ["remove_node", "set_node"]
    cluster.mirror.on_malformed_deleted(malformed)
    assert cluster.model.calls() == ["remove_node"]


def test_a_closed_mirror_says_nothing_more() -> None:
    cluster = Cluster()
    cluster.mirror.close()
    cluster.pods.put(pod())
    assert (cluster.model.calls(), cluster.woken()) == ([], False)


def test_what_was_there_before_the_mirror_is_told_first() -> None:
    store: Store[Pod] = Store("Pod")
    store.put(pod())
    cluster = Cluster()
    stores: list[Any] = [store, *(Store[Pod]("Pod") for _ in range(4))]
    cluster.mirror.attach(EngineInformers(*stores))
    assert cluster.model.calls() == ["set_task"]


def test_a_pod_that_nobody_foresaw_is_named_and_the_others_go_on() -> None:
    cluster = Cluster()
    odd = pod("odd")
    cluster.pods.put(
        msgspec.structs.replace(odd, metadata=msgspec.structs.replace(odd.metadata, creation_timestamp="?"))
    )
    cluster.pods.put(pod("good"))
    assert [spec.name for _, spec in cluster.model.told] == ["good"]
    assert [event[:2] for event in cluster.events] == [("Pod odd", "InvalidPod")]
    assert cluster.doubts == []


def test_a_model_that_fails_is_in_doubt() -> None:
    cluster = Cluster()
    failure = ArithmeticError("the accounts don't add up")
    cluster.pods.put(pod())
    cluster.model.failure = failure
    cluster.pods.remove("default/p")
    assert cluster.doubts == [failure]


def test_a_quota_is_told_and_wakes_the_loop() -> None:
    cluster = Cluster()
    given = {"metadata": {"name": "q", "namespace": "ns"}, "status": {"hard": {"cpu": "1"}}}
    cluster.resource_quotas.put(msgspec.convert(given, type=ResourceQuota))
    assert (cluster.model.calls(), cluster.woken()) == (["set_resource_quota"], True)


def test_a_disruption_budget_is_told_and_wakes_the_loop() -> None:
    cluster = Cluster()
    cluster.disruption_budgets.put(msgspec.convert({"metadata": {"name": "b"}}, type=PodDisruptionBudget))
    assert (cluster.model.calls(), cluster.woken()) == (["set_disruption_budget"], True)
