"""Whom a change concerns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from muster.controllers.context import ObservedRayCluster
from muster.controllers.interests import Interests
from muster.controllers.runner import LOOKING_AT
from muster.controllers.wiring import Wiring
from muster.controllers.workqueue import WorkQueue
from muster.kube.access_objects import Role, RoleBinding, ServiceAccount
from muster.kube.informer import Change, ChangeKind
from muster.kube.malformed import MalformedObject
from muster.kube.objects import ApiObject, Ingress, Job, Node, PartialObject, Pod, PodGroup, Queue, Service
from muster.kube.resource import PODS, QUEUES, RAYCLUSTERS, RAYJOBS
from tests.controllers.fake_clock import FakeClock


@dataclass
class Source:
    """An informer, as far as the wiring knows one."""

    handlers: list[Any] = field(default_factory=list)
    malformed_handlers: list[Any] = field(default_factory=list)
    there: list[Any] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def informer(self) -> Source:
        return self

    def get(self, namespace: str, name: str) -> Any:
        return next((one for one in self.there if one.key == f"{namespace}/{name}"), None)

    def by_index(self, index: str, value: str) -> list[Any]:
        self.asked.append((index, value))
        return self.there

    def subscribe(self, handler: Any) -> None:
        self.handlers.append(handler)

    def on_malformed(self, callback: Any) -> None:
        self.malformed_handlers.append(callback)

    on_malformed_deleted = on_malformed

    def changed(self, old: ApiObject | None, new: ApiObject | None) -> None:
        kind = ChangeKind.ADDED if old is None else ChangeKind.DELETED if new is None else ChangeKind.MODIFIED
        for handler in self.handlers:
            handler(Change(kind, old, new))


class Ends:
    """The ends of the objects of a kind."""

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = lambda key: None

    def tell_ends(self, tell: Callable[[str], None]) -> None:
        self.tell = tell


class Sources:
    """A context without an API server."""

    def __init__(self) -> None:
        self.job_interests, self.cluster_interests = Interests(), Interests()
        self.pods, self.services, self.jobs = Source(), Source(), Source()
        self.ingresses = Source()
        self.nodes = Source()
        self.service_accounts, self.roles, self.role_bindings = Source(), Source(), Source()
        self.pod_groups, self.queues, self.ray_clusters = Source(), Source(), Source()
        self.primaries = {RAYJOBS: Ends(), RAYCLUSTERS: Ends()}


class Wired:
    """The wiring between sources and three queues, which collect."""

    def __init__(self, *namespaces: str) -> None:
        self.sources = Sources()
        self.queues = {name: WorkQueue(clock=FakeClock()) for name in ("jobs", "clusters", "queues")}
        jobs, clusters, queues = self.queues.values()
        Wiring(self.sources, jobs, clusters, queues, namespaces).connect()  # type: ignore[arg-type]

    def waiting(self) -> dict[str, int]:
        return {name: len(queue) for name, queue in self.queues.items() if len(queue)}


def made(kind: type[ApiObject], owner: str | None = None, *, owner_name: str = "owner", **raw: Any) -> Any:
    metadata: dict[str, Any] = {"name": "it", "namespace": "ns", "uid": "u", "labels": raw.pop("labels", {})}
    if owner is not None:
        owner_kind, _, api_version = owner.partition(" ")
        metadata["ownerReferences"] = [
            {
                "apiVersion": api_version or "ray.io/v1",
                "kind": owner_kind,
                "name": owner_name,
                "uid": "o",
                "controller": True,
            }
        ]
    return msgspec.convert({"metadata": metadata, **raw}, kind)


@pytest.mark.parametrize(
    ("source", "changed", "woken"),
    [
        pytest.param("pods", made(Pod, "RayCluster"), {"clusters": 1}, id="a pod wakes its cluster"),
        pytest.param("pods", made(Pod, "ReplicaSet apps/v1"), {}, id="a foreign pod wakes nobody"),
        pytest.param("pods", made(Pod), {}, id="a bare pod wakes nobody"),
        pytest.param("pods", made(Pod, "RayCluster ray.io/v1alpha1"), {"clusters": 1}, id="any version of the owner"),
        pytest.param("pods", made(Pod, "RayCluster example.org/v1"), {}, id="another group's RayCluster"),
        pytest.param("services", made(Service, "RayCluster"), {"clusters": 1}, id="a head service"),
        pytest.param("services", made(Service, "RayJob"), {"jobs": 1}, id="a job's service"),
        pytest.param("service_accounts", made(ServiceAccount, "RayCluster"), {"clusters": 1}, id="an account"),
        pytest.param("roles", made(Role, "RayCluster"), {"clusters": 1}, id="a role"),
        pytest.param("role_bindings", made(RoleBinding, "RayCluster"), {"clusters": 1}, id="a binding"),
        pytest.param("ingresses", made(Ingress, "RayCluster"), {"clusters": 1}, id="an ingress"),
        pytest.param("jobs", made(Job, "RayJob"), {"jobs": 1}, id="the submitter wakes its job"),
        pytest.param("ray_clusters", made(ObservedRayCluster, "RayJob"), {"jobs": 1}, id="a cluster wakes its job"),
        pytest.param("ray_clusters", made(ObservedRayCluster), {}, id="a cluster of its own"),
        pytest.param("pod_groups", made(PodGroup, "RayJob"), {"jobs": 1, "queues": 1}, id="a job's gang"),
        pytest.param("pod_groups", made(PodGroup, "RayCluster"), {"clusters": 1, "queues": 1}, id="a cluster's gang"),
        pytest.param("queues", made(Queue), {"queues": 1}, id="a queue"),
    ],
)
@pytest.mark.parametrize("deleted", [False, True])
def test_a_change_wakes_whom_it_concerns(source: str, changed: ApiObject, woken: dict[str, int], deleted: bool) -> None:
    wired = Wired()
    getattr(wired.sources, source).changed(changed if deleted else None, None if deleted else changed)
    assert wired.waiting() == woken


@pytest.mark.parametrize(
    ("source", "kind", "owner", "woken"),
    [
        ("pods", Pod, "RayCluster", "clusters"),
        ("services", Service, "RayCluster", "clusters"),
        ("services", Service, "RayJob", "jobs"),
        ("jobs", Job, "RayJob", "jobs"),
        ("service_accounts", ServiceAccount, "RayCluster", "clusters"),
        ("roles", Role, "RayCluster", "clusters"),
        ("role_bindings", RoleBinding, "RayCluster", "clusters"),
        ("ingresses", Ingress, "RayCluster", "clusters"),
        ("ray_clusters", ObservedRayCluster, "RayJob", "jobs"),
        ("pod_groups", PodGroup, "RayJob", "jobs"),
        ("pod_groups", PodGroup, "RayCluster", "clusters"),
    ],
)
@pytest.mark.parametrize("new_owner", [None, "another", "foreign"])
def test_who_has_lost_a_child_to_another_owner_or_to_none_is_woken(
    source: str, kind: type[ApiObject], owner: str, woken: str, new_owner: str | None
) -> None:
    wired = Wired()
    mine = made(kind, owner)
    others = {"another": made(kind, owner, owner_name="another"), "foreign": made(kind, "ReplicaSet apps/v1")}
    getattr(wired.sources, source).changed(mine, others[new_owner] if new_owner else made(kind))
    assert wired.waiting().get(woken) == (2 if new_owner == "another" else 1)


KINDS = ("pods", "services", "jobs", "service_accounts", "roles", "role_bindings", "ingresses", "pod_groups")


@pytest.mark.parametrize(
    ("source", "owner", "woken"),
    [*((kind, "RayCluster", "clusters") for kind in KINDS), ("ray_clusters", "RayJob", "jobs")],
)
def test_whose_child_can_not_be_read_is_told_of_it_and_of_its_end(source: str, owner: str, woken: str) -> None:
    wired = Wired()
    kind = getattr(wired.sources, source)
    bad, worse = (
        MalformedObject(PODS, "ns", "it", "spec: …", "u", "7", metadata)
        for metadata in (made(PartialObject, owner).metadata, None)
    )
    assert len(kind.malformed_handlers) == 2, "its faults, and its end"
    for handler in kind.malformed_handlers:
        handler(worse)
        assert wired.waiting() == {}
    for handler in kind.malformed_handlers:
        handler(bad)
    assert wired.waiting() == {woken: 1}


def test_who_waits_for_the_last_pods_of_a_cluster_is_woken_by_one_that_loses_its_label() -> None:
    wired = Wired()
    wired.sources.job_interests.add("ns/retried", PODS, "ns/gone")
    wired.sources.pods.changed(made(Pod, labels={"ray.io/cluster": "gone"}), made(Pod))
    assert wired.waiting() == {"jobs": 1}


@pytest.mark.parametrize(("namespaces", "woken"), [(("ns", "other"), {"clusters": 1}), (("other",), {})])
def test_owners_in_a_namespace_of_somebody_else_are_not_woken(
    namespaces: tuple[str, ...], woken: dict[str, int]
) -> None:
    wired = Wired(*namespaces)
    wired.sources.pods.changed(None, made(Pod, "RayCluster"))
    assert wired.waiting() == woken


@pytest.mark.parametrize("name", [".", "..", "it/status", "it?watch=1", "It", "", "a" * 254])
@pytest.mark.parametrize("kind", ["RayCluster", "RayJob"])
def test_an_owner_whose_name_no_object_can_have_is_not_asked_for(kind: str, name: str) -> None:
    """The API server takes any name in an owner reference; a look at that key would fail, and be tried for ever."""
    wired = Wired()
    wired.sources.services.changed(None, made(Service, kind, owner_name=name))
    assert wired.waiting() == {}


def test_a_pod_group_that_moves_wakes_both_queues() -> None:
    wired = Wired()
    old, new = made(PodGroup, spec={"queue": "a"}), made(PodGroup, spec={"queue": "b"})
    wired.sources.pod_groups.changed(old, new)
    assert wired.waiting() == {"queues": 2}


def of_generation(one: Any, generation: int) -> Any:
    """As the API server stores the object after a change of what it counts as its spec."""
    metadata = msgspec.structs.replace(one.metadata, generation=generation, resource_version="9")
    return msgspec.structs.replace(one, metadata=metadata)


GATE = [{"name": "muster.dev/gang"}]


@pytest.mark.parametrize(
    ("kind", "before", "after", "woken"),
    [
        pytest.param(Pod, {"schedulingGates": GATE}, {}, {}, id="a pod lost its gate"),
        pytest.param(Pod, {"schedulingGates": GATE}, {"nodeName": "n"}, {"clusters": 1}, id="a pod was bound"),
        pytest.param(PodGroup, {"minMember": 2}, {"minMember": 3}, {"clusters": 1}, id="somebody changed the gang"),
    ],
)
def test_what_cannot_alter_anything_for_a_cluster_wakes_it_not(
    kind: type[ApiObject], before: dict[str, Any], after: dict[str, Any], woken: dict[str, int]
) -> None:
    wired = Wired()
    old, new = (made(kind, "RayCluster", spec=spec) for spec in (before, after))
    new = of_generation(new, 2)
    source = wired.sources.pods if kind is Pod else wired.sources.pod_groups
    source.changed(old, new)
    assert {name: number for name, number in wired.waiting().items() if name != "queues"} == woken


def test_the_schedulers_word_wakes_the_job_that_tells_of_it_and_not_the_cluster() -> None:
    for owner, woken in (("RayJob", {"jobs": 1, "queues": 1}), ("RayCluster", {"queues": 1})):
        wired = Wired()
        old, new = (made(PodGroup, owner, status={"phase": phase}) for phase in ("Pending", "Running"))
        new = of_generation(new, 2)
        wired.sources.pod_groups.changed(old, new)
        assert wired.waiting() == woken


@pytest.mark.parametrize(
    ("looking_at", "woken"),
    [(("RayCluster", "ns/owner"), {}), (("RayCluster", "ns/other"), {"clusters": 1}), (None, {"clusters": 1})],
)
def test_a_look_at_a_cluster_is_not_woken_by_what_it_makes(
    looking_at: tuple[str, str] | None, woken: dict[str, int]
) -> None:
    wired = Wired()
    token = LOOKING_AT.set(looking_at)
    try:
        wired.sources.pods.changed(None, made(Pod, "RayCluster"))
    finally:
        LOOKING_AT.reset(token)
    assert wired.waiting() == woken


def test_who_waits_for_a_queue_or_for_the_last_pods_of_a_cluster_is_woken() -> None:
    wired = Wired()
    wired.sources.job_interests.add("ns/late", QUEUES, "it")
    wired.sources.queues.changed(None, made(Queue))
    assert wired.waiting() == {"jobs": 1, "queues": 1}
    wired.sources.cluster_interests.add("ns/cluster", QUEUES, "it")
    wired.sources.queues.changed(made(Queue), made(Queue))
    assert wired.waiting() == {"jobs": 1, "queues": 1, "clusters": 1}
    wired.sources.job_interests.add("ns/retried", PODS, "ns/gone")
    wired.sources.pods.changed(made(Pod, labels={"ray.io/cluster": "gone"}), None)
    assert wired.waiting()["jobs"] == 2


def pulling(reason: str) -> Pod:
    """A pod of cluster "it" whose container waits for this reason."""
    status = {"containerStatuses": [{"name": "ray", "state": {"waiting": {"reason": reason}}}]}
    found: Pod = made(Pod, labels={"ray.io/cluster": "it"}, status=status)
    return found


def test_a_pods_trouble_wakes_the_job_that_it_works_for_and_a_kubelets_next_try_does_not() -> None:
    wired = Wired()
    wired.sources.ray_clusters.there = [made(ObservedRayCluster, "RayJob")]
    starting, failing = pulling("ContainerCreating"), pulling("ErrImagePull")
    wired.sources.pods.changed(None, starting)
    assert wired.waiting() == {}
    wired.sources.pods.changed(starting, failing)
    assert wired.waiting() == {"jobs": 1}
    tried = Wired()
    tried.sources.ray_clusters.there = wired.sources.ray_clusters.there
    tried.sources.pods.changed(failing, pulling("ImagePullBackOff"))
    assert tried.waiting() == {}


@pytest.mark.parametrize(("kind", "woken"), [("RayJob", {"jobs": 1}), ("RayService", {})])
def test_a_submitters_trouble_wakes_its_job(kind: str, woken: dict[str, int]) -> None:
    wired = Wired()
    origin = {"ray.io/originated-from-cr-name": "demo", "ray.io/originated-from-crd": kind}
    status = {"containerStatuses": [{"name": "s", "state": {"waiting": {"reason": "InvalidImageName"}}}]}
    wired.sources.pods.changed(None, made(Pod, "Job batch/v1", labels=origin, status=status))
    assert wired.waiting() == woken


def node(status: str, since: str = "2026-01-01T00:00:00Z") -> Node:
    ready = {"type": "Ready", "status": status, "lastTransitionTime": since}
    return msgspec.convert({"metadata": {"name": "n1"}, "status": {"conditions": [ready]}}, Node)


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        (node("True"), node("Unknown"), True),
        (node("Unknown"), node("True"), True),
        (None, node("Unknown"), True),
        (node("Unknown"), None, True),
        (node("Unknown"), node("Unknown"), False),
        (node("True"), node("True", "2026-01-02T00:00:00Z"), False),
        (node("True"), node("False"), False),
        (None, node("True"), False),
    ],
)
def test_a_node_that_falls_silent_or_comes_back_concerns_the_clusters_that_have_pods_there(
    old: Node | None, new: Node | None, woken: bool
) -> None:
    wired = Wired()
    wired.sources.pods.there = [made(Pod, "RayCluster"), made(Pod)]
    wired.sources.nodes.changed(old, new)
    assert wired.waiting() == ({"clusters": 1} if woken else {})
    assert wired.sources.pods.asked == ([("node", "n1")] if woken else [])


def test_an_end_that_one_watch_has_missed_leads_to_a_last_look() -> None:
    wired = Wired("ns")
    wired.sources.primaries[RAYJOBS].tell("ns/it")
    wired.sources.primaries[RAYJOBS].tell("elsewhere/it")
    assert wired.waiting() == {"jobs": 1}
    wired.sources.primaries[RAYCLUSTERS].tell("ns/it")
    assert wired.waiting() == {"jobs": 1, "clusters": 1}
