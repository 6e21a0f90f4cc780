"""A running cluster is asked with the caller's rights; where that is too little the status has to do."""

from __future__ import annotations

from typing import Any

import pytest

from muster.explain.from_cluster import explain_cluster
from muster.explain.target import TargetError, parse_target
from muster.explain.text import as_text
from muster.scheduler.conf import SchedulerConfiguration, load_configuration
from tests.explain.stub_cluster import StubCluster
from tests.simulator.conftest import NOW
from tests.simulator.manifests import Manifest, node, pod, pod_group, queue

REASON = (
    '{"code":"QueueQuota","class":"quota","message":"queue q has no quota left","queue":"q","resource":"cpu",'
    '"requested":"2","since":"2026-01-01T11:50:00Z","advice":"wait"}'
)


def lease(renewed: str) -> Manifest:
    spec = {"holderIdentity": "m", "leaseDurationSeconds": 15, "renewTime": renewed}
    meta = {"name": "muster-scheduler", "namespace": "muster-system"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def waiting_group() -> Manifest:
    group = pod_group("g", queue="q", phase="Pending")
    written = {"manager": "muster", "time": "2026-01-01T11:55:00Z"}
    written["fieldsV1"] = {"f:metadata": {"f:annotations": {"f:muster.dev/reason": {}}}}  # type: ignore[assignment]
    other = {"manager": "kubectl", "time": "2026-01-01T11:59:00Z", "fieldsV1": {"f:spec": {}}}
    group["metadata"] |= {"annotations": {"muster.dev/reason": REASON}, "managedFields": [written, other], "uid": "u"}
    return group


async def ask(
    target: str,
    *objects: Manifest,
    forbidden: tuple[str, ...] = (),
    configuration: SchedulerConfiguration | None = None,
) -> dict[str, Any]:
    return await explain_cluster(
        StubCluster(*objects, forbidden=forbidden).client(),
        parse_target(target, "default"),
        NOW,
        namespace="muster-system",
        deployment="muster",
        configuration=configuration,
        scheduler_names=(),
    )


async def test_the_scheduler_is_asked_on_what_the_cluster_is_now() -> None:
    answer = await ask("podgroup/g", node("n1", cpu=1), lease("2026-01-01T11:59:50Z"), pod_group("g"), pod("p", "g", 2))
    assert answer["source"] == "scheduler"
    assert answer["reason"]["code"] == "LargerThanCluster"


async def test_while_no_scheduler_runs_the_status_is_told_with_its_age() -> None:
    answer = await ask("pod/p", node("n1"), lease("2026-01-01T11:00:00Z"), waiting_group(), pod("p", "g"))
    assert (answer["source"], answer["age"], answer["asOf"]) == ("status", 300, "2026-01-01T11:55:00Z")
    assert answer["reason"]["waited"] == 600
    text = as_text(answer)
    assert "no scheduler is running: Lease muster-system/muster-scheduler was last renewed 3600 s ago" in text
    assert "this is what the scheduler wrote 5m ago" in text
    assert "It waits: queue q has no quota left." in text


async def test_who_may_not_read_all_pods_is_told_the_status_too() -> None:
    answer = await ask("podgroup/g", node("n1"), waiting_group(), forbidden=("pods",))
    assert answer["source"] == "status"
    assert "pods is forbidden" in answer["note"]


async def test_a_status_without_a_note_of_who_wrote_it_is_as_old_as_its_conditions() -> None:
    group = waiting_group()
    del group["metadata"]["managedFields"]
    group["status"]["conditions"] = [{"type": "Unschedulable", "lastTransitionTime": "2026-01-01T11:58:00Z"}]
    assert (await ask("podgroup/g", group, forbidden=("pods",)))["age"] == 120


@pytest.mark.parametrize("reason", ["", "{", "[]"])
async def test_a_pod_group_without_a_reason_says_its_phase(reason: str) -> None:
    group = waiting_group()
    group["metadata"]["annotations"]["muster.dev/reason"] = reason
    del group["metadata"]["managedFields"]
    answer = await ask("podgroup/g", group, forbidden=("nodes",))
    assert "reason" not in answer
    assert "PodGroup default/g, Pending" in as_text(answer)


@pytest.mark.parametrize("target", ["podgroup/x", "rayjob/x", "pod/x"])
@pytest.mark.parametrize("forbidden", [(), ("pods",)])
async def test_what_is_not_there_is_said_to_be_missing(target: str, forbidden: tuple[str, ...]) -> None:
    with pytest.raises(TargetError, match="default/x"):
        await ask(target, node("n1"), forbidden=forbidden)


async def test_one_object_that_can_not_be_used_is_named_and_left_out() -> None:
    bad = pod("bad", "g", "-1")
    answer = await ask("podgroup/g", node("n1"), pod_group("g"), pod("p", "g"), bad)
    assert answer["wouldBind"] == {"default/p": "n1"}
    assert any("default/bad" in each for each in answer["leftOut"])


async def test_a_pod_group_that_can_not_be_used_is_told_with_what_the_scheduler_said_of_it() -> None:
    group = waiting_group()
    group["spec"]["minResources"] = {"cpu": "many"}
    answer = await ask("pod/p", node("n1"), lease("2026-01-01T11:59:50Z"), group, pod("p", "g"))
    assert answer["source"] == "status"
    assert "PodGroup default/g: spec.minResources[cpu]: 'many'" in answer["note"]
    assert answer["reason"]["code"] == "QueueQuota"
    assert "does not exist" not in as_text(answer)


def refused_cluster() -> Manifest:
    words = 'pods "c-w" is forbidden: exceeded quota: team'
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod", "message": words}
    meta = {"name": "c", "namespace": "default"}
    status = {"conditions": [failed]}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": meta, "spec": {}, "status": status}


def group_without_pods() -> Manifest:
    group = waiting_group()
    group["metadata"]["name"] = "ray-c-pg"
    group["spec"]["queue"] = "default"
    group["metadata"]["annotations"]["muster.dev/reason"] = (
        '{"code":"NotEnoughPods","class":"incomplete","message":"0 of 1 pods exist","advice":"wait"}'
    )
    return group


@pytest.mark.parametrize("target", ["raycluster/c", "podgroup/ray-c-pg"])
@pytest.mark.parametrize("forbidden", [(), ("pods",)])
async def test_a_quota_that_refuses_the_pods_is_named_also_to_who_may_read_one_namespace_only(
    target: str, forbidden: tuple[str, ...]
) -> None:
    answer = await ask(target, node("n1"), group_without_pods(), refused_cluster(), forbidden=forbidden)
    assert answer["source"] == ("status" if forbidden else "scheduler")
    assert answer["reason"]["code"] == "NamespaceQuota"
    assert "exceeded quota: team" in answer["reason"]["message"]


async def test_who_may_not_read_ray_clusters_is_told_what_stands_on_the_pod_group() -> None:
    objects = [node("n1"), group_without_pods(), refused_cluster()]
    answer = await ask("podgroup/ray-c-pg", *objects, forbidden=("pods", "rayclusters"))
    assert answer["reason"]["message"] == "0 of 1 pods exist"


def mounting(name: str) -> Manifest:
    status = {
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}],
        "conditions": [{"type": "PodReadyToStartContainers", "status": "False"}],
    }
    return pod(name, "g", node="n1", phase="Pending", status=status)


def event(about: Manifest, reason: str, message: str, at: str, kind: str = "Warning") -> Manifest:
    meta = about["metadata"]
    involved = {"kind": "Pod", "name": meta["name"], "uid": meta.get("uid", "")}
    event_meta = {"name": reason.lower(), "namespace": meta["namespace"]}
    body = {"apiVersion": "v1", "kind": "Event", "metadata": event_meta, "involvedObject": involved}
    return {**body, "type": kind, "reason": reason, "message": message, "lastTimestamp": at}


async def test_a_pod_whose_volumes_are_missing_is_told_with_its_last_warning() -> None:
    waiting = mounting("p")
    waiting["metadata"]["uid"] = "u-1"
    missing = 'MountVolume.SetUp failed for volume "code" : configmap "code" not found'
    answer = await ask(
        "podgroup/g",
        node("n1"),
        pod_group("g"),
        waiting,
        event(waiting, "FailedCreatePodSandBox", "no network", "2026-01-01T11:58:00Z"),
        event(waiting, "FailedMount", missing, "2026-01-01T11:59:30Z"),
        event(waiting, "Pulled", "image there", "2026-01-01T11:59:50Z", kind="Normal"),
    )
    (told,) = answer["notReady"]
    assert told["warning"] == {"reason": "FailedMount", "message": missing, "age": 30}
    text = as_text(answer)
    assert "default/p on n1: its volumes or its network are not set up yet" in text
    assert f"    FailedMount (30s ago): {missing}" in text


async def test_who_may_not_read_events_is_told_what_the_pods_say() -> None:
    answer = await ask("podgroup/g", node("n1"), pod_group("g"), mounting("p"), forbidden=("events",))
    (told,) = answer["notReady"]
    assert "warning" not in told
    assert "ConfigMap" in told["waitsFor"]


WITH_EXTENDER = load_configuration(
    {
        "actions": "enqueue, allocate",
        "tiers": [
            {
                "plugins": [
                    {"name": "gang"},
                    {
                        "name": "extender",
                        "arguments": {"extender.urlPrefix": "http://x", "extender.predicateVerb": "predicate"},
                    },
                ]
            }
        ],
    }
)


async def test_what_an_extender_says_is_told_as_the_scheduler_wrote_it() -> None:
    """By all that can be known here the gang would be placed: whoever keeps it waiting is the extender."""
    objects = (node("n1"), lease("2026-01-01T11:59:50Z"), queue("q"), pod("p", "g"))
    answer = await ask("podgroup/g", *objects, waiting_group(), configuration=WITH_EXTENDER)
    assert (answer["source"], answer["reason"]["code"]) == ("status", "QueueQuota")
    assert answer["note"] == "what the extender says is known to the scheduler only"
    group = pod_group("g", queue="q")
    answer = await ask("podgroup/g", *objects, group, configuration=WITH_EXTENDER)
    assert answer["wouldBind"] == {"default/p": "n1"}
    assert [each for each in answer["leftOut"] if "plugin 'extender'" in each]


async def test_a_gang_that_waits_for_room_is_explained_though_there_is_an_extender() -> None:
    objects = (node("n1"), lease("2026-01-01T11:59:50Z"), queue("q"), pod("p", "g", 100))
    answer = await ask("podgroup/g", *objects, waiting_group(), configuration=WITH_EXTENDER)
    assert (answer["source"], answer["reason"]["code"]) == ("scheduler", "LargerThanCluster")
    group = waiting_group()
    group["metadata"]["annotations"]["muster.dev/reason"] = REASON.replace("QueueQuota", "ExtenderRefused")
    answer = await ask("podgroup/g", *objects, group, configuration=WITH_EXTENDER)
    assert answer["source"] == "status"


def deployment(*args: str) -> Manifest:
    containers = [{"name": "other", "command": ["sleep"]}, {"name": "muster", "args": ["run", *args]}]
    meta = {"name": "muster", "namespace": "muster-system"}
    spec = {"template": {"spec": {"containers": containers}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def room_and_two_gangs() -> list[Manifest]:
    """A large gang that has waited for an hour, and a small one for which there is room."""
    runs = pod("runs", cpu=2, node="n1", status={"phase": "Running"})
    large, small = pod_group("large", 1), pod_group("g", 1)
    large["metadata"]["creationTimestamp"] = "2026-01-01T11:00:00Z"
    small["metadata"]["creationTimestamp"] = "2026-01-01T11:59:00Z"
    waits = [pod("l", "large", 4, metadata={"uid": "l"}), pod("p", "g", 1, metadata={"uid": "p"})]
    return [node("n1", cpu=4), runs, large, small, *waits]


@pytest.mark.parametrize(
    ("args", "held"),
    [
        ([], True),
        (["--starvation-timeout=0"], False),
        (["--starvation-timeout", "7200"], False),
        (["--starvation-timeout=soon"], True),
    ],
)
async def test_the_scheduler_is_asked_as_it_was_started(args: list[str], held: bool) -> None:
    answer = await ask("podgroup/g", deployment(*args), *room_and_two_gangs())
    assert answer["source"] == "scheduler"
    assert answer.get("reason", {}).get("code") == ("RoomReserved" if held else None)
    assert any("'soon' is no number" in each for each in answer["leftOut"]) is ("--starvation-timeout=soon" in args)


async def test_the_pods_of_the_scheduler_s_own_names_are_asked_about() -> None:
    other = pod("p", "g", scheduler="mine")
    answer = await ask("podgroup/g", deployment("--scheduler-name=mine"), node("n1"), pod_group("g"), other)
    assert answer["wouldBind"] == {"default/p": "n1"}
    assert "wouldBind" not in await ask("podgroup/g", deployment(), node("n1"), pod_group("g"), other)
