"""The answer on manifests: worked out by the scheduler, and in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.explain.answer import explain
from muster.explain.from_files import ray_clusters, ray_state
from muster.explain.target import TargetError, parse_target
from muster.explain.text import as_text, duration
from muster.ray.labels import TASK_SPEC
from muster.scheduler.conf import DEFAULT, SchedulerConfiguration
from muster.simulator.manifests import read_manifests
from muster.simulator.model import build_model
from muster.simulator.simulation import Pace, Simulation
from muster.simulator.sources import read_sources
from muster.testing import configuration
from tests.simulator import manifests
from tests.simulator.conftest import NOW
from tests.simulator.manifests import Manifest, gang, node, pod, pod_group, priority_class, queue

Objects = Manifest | list[Manifest]


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    def run(target: str, *objects: Objects, conf: SchedulerConfiguration = DEFAULT) -> dict[str, Any]:
        file = tmp_path / "cluster.yaml"
        file.write_bytes(manifests.text(*objects))
        documents = read_sources([str(file)]).documents
        model = build_model(read_manifests(documents), ("muster",))
        wanted = parse_target(target, "default")
        clusters = ray_clusters(documents, wanted.namespace)
        return explain(Simulation(model, conf, Pace(NOW)), wanted, ray_state(documents, wanted), clusters)

    return run


def ray(kind: str, name: str, suspend: bool = False, **status: str) -> Manifest:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": meta, "spec": {"suspend": suspend}, "status": status}


def test_a_gang_that_waits_for_room(ask: Any) -> None:
    objects = [node("n1"), node("n2"), pod_group("r"), pod("r", "r", 3, node="n1"), gang("g", 2, cpu=4)]
    answer = ask("podgroup/g", *objects)
    reason = answer["reason"]
    assert (answer["source"], answer["phase"]) == ("scheduler", "Inqueue")
    assert (reason["code"], reason["resource"]) == ("NotEnoughNodes", "cpu")
    assert (reason["requested"], reason["free"]) == ("4", "1")
    assert reason["nearMiss"] == {"node": "n1", "lacks": "cpu 3"}
    assert reason["holders"] == [{"podGroup": "default/r", "queue": "default", "amount": "3", "reclaimable": False}]
    assert (reason["position"], reason["ahead"], reason["waited"]) == (1, 0, 0)
    assert answer["members"]["fitting"] == 1
    assert set(answer["members"]["failing"]) == {"g-w-1"}
    assert reason["suggestion"]["change"] == {"minMember": 1}
    assert [each["name"] for each in answer["queues"]] == ["default", "root"]


def test_who_lacks_pods_is_told_where_to_look(ask: Any) -> None:
    answer = ask("podgroup/g", node("n1"), pod_group("g", 3))
    assert answer["reason"]["advice"] == "wait"
    assert "see the events of who makes them" in as_text(answer)


def test_the_text_says_it_all_in_words(ask: Any) -> None:
    objects = [node("n1"), node("n2"), pod_group("r"), pod("r", "r", 3, node="n1"), gang("g", 2, cpu=4)]
    text = as_text(ask("podgroup/g", *objects))
    for part in (
        "podgroup default/g: PodGroup default/g, Inqueue",
        "It waits: 1 of 2 members have a place; g-w-1 needs cpu 4",
        "queue default, uses cpu 3",
        "  below root",
        "cpu: asked for 4, used 3, free 1, of 4",
        "members: 1 of 2 find a node",
        "closest: n1 lacks cpu 3",
        "in use by: default/r (queue default) cpu 3\n",
        "number 1 of those that wait in its queue (none before it); has waited 0s",
        "a node is added, freed or changed",
        "what would help: with 1 member instead of 2 it would be placed now",
        "advice: wait",
    ):
        assert part in text, part


def test_a_gang_that_would_be_placed_now(ask: Any) -> None:
    answer = ask("pod/g-w-0", node("n1"), gang("g", 1))
    assert answer["wouldBind"] == {"default/g-w-0": "n1"}
    assert "It is placed now: default/g-w-0 on n1." in as_text(answer)


def test_a_placed_gang_goes_on_to_what_its_pods_wait_for(ask: Any) -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    status = {"containerStatuses": [{"name": "main", "state": waiting}]}
    answer = ask("podgroup/g", node("n1"), pod_group("g"), pod("p", "g", node="n1", phase="Pending", status=status))
    assert answer["notReady"] == [
        {"pod": "default/p", "node": "n1", "waitsFor": "container main waits: ErrImagePull: no such image"}
    ]
    assert "reason" not in answer
    assert "It has its nodes. What is not ready yet:" in as_text(answer)


def test_a_ray_job_is_explained_by_its_gang(ask: Any) -> None:
    objects = [node("n1", cpu=1), pod_group("ray-job-pg"), pod("head", "ray-job-pg", 2), ray("RayJob", "job")]
    answer = ask("rayjob/job", *objects)
    assert answer["podGroup"] == "default/ray-job-pg"
    assert answer["reason"]["code"] == "LargerThanCluster"


def member(name: str, role: str, cpu: Any) -> Manifest:
    return pod(name, "ray-job-pg", cpu, annotations={TASK_SPEC: role})


def test_what_would_help_a_ray_job_is_said_of_its_workers(ask: Any) -> None:
    workers = [member(f"w-{number}", "small", "700m") for number in range(6)]
    group = pod_group("ray-job-pg", 7, minTaskMember={"headgroup": 1, "small": 6})
    nodes = [node("n1", cpu=2), node("n2", cpu=2), ray("RayJob", "job")]
    suggestion = ask("rayjob/job", *nodes, group, member("h", "headgroup", "500m"), *workers)["reason"]["suggestion"]
    assert suggestion["text"] == "with 4 workers of group small instead of 6 it would be placed now"
    assert suggestion["change"]["workers"] == {"small": 4}
    assert suggestion["change"]["minTaskMember"] == {"headgroup": 1, "small": 4}


def test_what_would_fit_the_queue_is_said_of_the_workers_too(ask: Any) -> None:
    workers = [member(f"w-{number}", "small", 1) for number in range(8)]
    roles = {"headgroup": 1, "small": 8}
    group = pod_group("ray-job-pg", 9, queue="q", phase="Pending", minTaskMember=roles, minResources={"cpu": "8500m"})
    other = pod_group("other", 1, queue="q", minResources={"cpu": "4"})
    small = [queue("q", capability={"cpu": "6500m"}), queue("default", capability={"cpu": "100m"})]
    objects = [node("n1", cpu=16), ray("RayJob", "job"), *small, other, group, member("h", "headgroup", "500m")]
    answer = ask("rayjob/job", *objects, *workers)
    reason = answer["reason"]
    assert reason["suggestion"]["text"] == (
        "with 2 workers of group small instead of 8 it would be placed now; "
        "with 6 workers of group small its queue could hold it once others give back what they hold"
    )
    assert reason["suggestion"]["change"]["workers"] == {"small": 2}
    assert reason["suggestion"]["atMost"]["workers"] == {"small": 6}
    assert "of which others hold cpu 4 (the most PodGroup default/other)" in as_text(answer)


@pytest.mark.parametrize(
    ("head", "worker", "who"),
    [
        ("500m", 3, "each worker of group small asked for cpu 2 instead of 3"),
        (3, 1, "the head asked for cpu 2 instead of 3"),
    ],
)
def test_a_pod_that_should_be_smaller_is_named_by_what_the_user_edits(
    ask: Any, head: Any, worker: Any, who: str
) -> None:
    group = pod_group("ray-job-pg", 2, minTaskMember={"headgroup": 1, "small": 1})
    pods = [member("h", "headgroup", head), member("w", "small", worker)]
    answer = ask("rayjob/job", node("n1", cpu=2), node("n2", cpu=2), ray("RayJob", "job"), group, *pods)
    assert answer["reason"]["suggestion"]["text"] == f"if {who} it would be placed now"


def test_a_suspended_ray_job_says_so(ask: Any) -> None:
    answer = ask("rayjob/job", node("n1"), ray("RayJob", "job", suspend=True, jobDeploymentStatus="Suspended"))
    text = as_text(answer)
    assert "PodGroup default/ray-job-pg, not there while it is suspended\n" in text
    assert "suspended: set spec.suspend to false" in text
    assert "jobDeploymentStatus Suspended" in text


QUOTA = 'pods "c-w" is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1'
POLICY = 'pods "c-w" is forbidden: violates PodSecurity "restricted:latest"'


def cluster_without_pods(message: str, owner: str | None = "job", status: str = "True") -> Manifest:
    """A RayCluster, of a RayJob or alone, whose workers the API server refuses."""
    failed = {"type": "ReplicaFailure", "status": status, "reason": "FailedCreateWorkerPod", "message": message}
    cluster = ray("RayCluster", "c")
    cluster["status"] = {"conditions": [failed]}
    if owner is not None:
        cluster["metadata"]["ownerReferences"] = [{"kind": "RayJob", "name": owner, "uid": "u", "controller": True}]
    return cluster


def one_of_three(name: str = "ray-job-pg") -> list[Manifest]:
    return [node("n1"), pod_group(name, 3), pod("p", name)]


@pytest.mark.parametrize("target", ["podgroup/ray-job-pg", "rayjob/job", "raycluster/c", "pod/p"])
def test_pods_that_a_quota_refuses_are_not_just_missing(ask: Any, target: str) -> None:
    answer = ask(target, *one_of_three(), ray("RayJob", "job"), cluster_without_pods(QUOTA))
    reason = answer["reason"]
    assert (reason["code"], reason["class"], reason["refused"]) == ("NamespaceQuota", "quota", QUOTA)
    assert reason["message"] == f"1 of 3 pods exist: a worker pod can't be made: {QUOTA}"
    text = as_text(answer)
    assert f"It waits: {reason['message']}.\n" in text
    assert "advice: wait for the namespace's other pods to end, ask for less, or have its ResourceQuota raised" in text


def test_pods_of_a_role_that_a_quota_refuses_are_not_just_missing_either(ask: Any) -> None:
    group = pod_group("ray-job-pg", 3, minTaskMember={"small": 2})
    objects = [node("n1"), group, pod("p", "ray-job-pg"), cluster_without_pods(QUOTA)]
    reason = ask("rayjob/job", *objects, ray("RayJob", "job"))["reason"]
    assert (reason["code"], reason["role"], reason["need"]) == ("NamespaceQuota", "small", 2)


def test_what_else_refuses_pods_is_named_too(ask: Any) -> None:
    answer = ask("rayjob/job", *one_of_three(), ray("RayJob", "job"), cluster_without_pods(POLICY))
    reason = answer["reason"]
    assert (reason["code"], reason["advice"], reason["refused"]) == ("NotEnoughPods", "change", POLICY)
    assert "advice: its pods are refused: change them, or have mended what refuses them (NotEnoughPods)" in as_text(
        answer
    )


@pytest.mark.parametrize(
    "cluster",
    [
        cluster_without_pods(QUOTA, owner="other"),
        cluster_without_pods(QUOTA, owner=None),
        cluster_without_pods(QUOTA, status="False"),
    ],
)
def test_what_refuses_others_or_is_over_is_not_named(ask: Any, cluster: Manifest) -> None:
    reason = ask("rayjob/job", *one_of_three(), ray("RayJob", "job"), cluster)["reason"]
    assert (reason["code"], reason["message"]) == ("NotEnoughPods", "1 of 3 pods exist")


def test_a_gang_that_waits_for_something_else_waits_for_that(ask: Any) -> None:
    cluster = cluster_without_pods(QUOTA)
    group = pod_group("ray-job-pg", 1)
    reason = ask("rayjob/job", node("n1", cpu=1), group, pod("p", "ray-job-pg", 2), ray("RayJob", "job"), cluster)[
        "reason"
    ]
    assert reason["code"] == "LargerThanCluster"


def test_who_has_only_the_words_of_the_ray_job_names_them(ask: Any) -> None:
    message = f"The RayCluster's head pod can't be made: {QUOTA}"
    reason = ask("rayjob/job", *one_of_three(), ray("RayJob", "job", message=message))["reason"]
    assert (reason["code"], reason["refused"]) == ("NamespaceQuota", QUOTA)


@pytest.mark.parametrize("target", ["podgroup/nothing", "rayjob/nothing", "pod/nothing"])
def test_what_is_not_there_is_said_to_be_missing(ask: Any, target: str) -> None:
    with pytest.raises(TargetError, match="nothing"):
        ask(target, node("n1"))


@pytest.mark.parametrize("place", [None, "n1"])
def test_a_pod_of_another_scheduler_is_said_to_be_its(ask: Any, place: str | None) -> None:
    foreign = pod("x", node=place, scheduler="other")
    with pytest.raises(TargetError, match="schedulerName is 'other'"):
        ask("pod/x", node("n1"), foreign)


def test_a_pod_group_that_only_pods_name_is_explained_too(ask: Any) -> None:
    answer = ask("podgroup/missing", node("n1"), pod("p", "missing"))
    assert answer["reason"]["code"] == "PodGroupMissing"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (3600, "1h"), (3900, "1h5m"), (172800, "2d"), (180000, "2d2h")],
)
def test_times_are_short(seconds: int, words: str) -> None:
    assert duration(seconds) == words


def test_a_pod_that_was_handed_to_the_default_scheduler_is_placed_not_about_to_be(ask: Any) -> None:
    note = {"muster.dev/delegated-at": "2026-01-01T12:00:00Z"}
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    member = pod("p", "g", scheduler="default-scheduler", annotations=note, affinity=affinity)
    answer = ask("podgroup/g", node("n1"), pod_group("g", phase="Inqueue"), member)
    assert "wouldBind" not in answer
    assert answer["notReady"] == [
        {"pod": "default/p", "node": "n1", "waitsFor": "default-scheduler has not bound it yet"}
    ]


def made(at: str, *objects: Objects) -> list[Manifest]:
    """The same objects, made at this time."""
    flat = [each for part in objects for each in (part if isinstance(part, list) else [part])]
    return [{**each, "metadata": {**each["metadata"], "creationTimestamp": at}} for each in flat]


LONG_AGO = "2026-01-01T08:00:00Z"
"""Four hours before NOW: long enough to have room held."""
TAKEN = "Insufficient cpu beside the gang's other members"


def with_companion(name: str, cpu: str, queue: str = "default") -> Manifest:
    """A PodGroup of one member with a submitter."""
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    found = pod_group(name, 1, queue=queue)
    note = {"muster.dev/companions": json.dumps([{"role": "submitter", "podSpec": spec}])}
    return {**found, "metadata": {**found["metadata"], "annotations": note}}


def test_room_that_is_held_for_the_gang_itself_is_not_in_its_way(ask: Any) -> None:
    runs = [pod_group("r"), pod("r", "r", 3, node="n1")]
    answer = ask("podgroup/g", node("n1"), node("n2"), *made(LONG_AGO, runs, gang("g", 2, cpu=4)))
    assert answer["reason"]["message"].endswith("room is being held for it")
    assert answer["members"] == {
        "fitting": 1,
        "needed": 2,
        "failing": {"g-w-1": f"0/2 nodes are available: 1 Insufficient cpu, 1 {TAKEN}"},
    }


def test_nodes_that_the_gangs_own_members_would_take_are_called_so(ask: Any) -> None:
    answer = ask("podgroup/g", node("n1"), node("n2"), gang("g", 3, cpu="2500m"))
    said = f"0/2 nodes are available: 2 {TAKEN}"
    assert answer["members"] == {"fitting": 2, "needed": 3, "failing": {"g-w-2": said}}
    assert answer["reason"]["message"].startswith(f"2 of 3 members have a place; g-w-2 needs cpu 2500m: {said}")


def test_a_gang_that_is_kept_out_is_told_for_whom_and_what_may_start_beside_it(ask: Any) -> None:
    runs = [pod_group("r"), pod("r", "r", 3, node="n1", runtime="6h")]
    late = made("2026-01-01T11:59:00Z", gang("g", 1, cpu=2, runtime="12h"))
    answer = ask("podgroup/g", node("n1"), node("n2"), *made(LONG_AGO, runs, gang("big", 2, cpu=4)), *late)
    assert answer["reason"]["message"] == (
        "there is room, but it is held for a gang of queue default that has waited too long; "
        "beside it only what is over by 2026-01-01T14:00:00Z is started"
    )
    assert answer["members"]["failing"] == {"g-w-0": "the room that it would take is held for another gang"}
    text = as_text(answer)
    assert "held for: default/big (queue default) cpu 8" in text
    assert "in use by" not in text


def test_a_companion_with_which_the_gang_is_larger_than_its_queue_is_said_to_be_so(ask: Any) -> None:
    cap = queue("q", capability={"cpu": "4"})
    answer = ask("podgroup/g", node("n1", cpu=16), cap, with_companion("g", "3500m", "q"), pod("p", "g", 1))
    reason = answer["reason"]
    assert (reason["code"], reason["requested"], reason["limit"]) == ("LargerThanQueue", "4500m", "4")
    assert answer["members"] == {"fitting": 1, "needed": 1, "failing": {}}


def test_what_a_queue_uses_does_not_count_the_gang_that_asks(ask: Any) -> None:
    runs = [pod_group("r", queue="q"), pod("r", "r", 2, node="n1")]
    cap = queue("q", capability={"cpu": "6"})
    answer = ask("podgroup/g", node("n1", cpu=16), cap, runs, with_companion("g", "3", "q"), pod("p", "g", 2))
    reason = answer["reason"]
    assert reason["code"] == "QueueQuota"
    assert (reason["requested"], reason["used"], reason["free"], reason["limit"]) == ("5", "2", "4", "6")
    assert answer["queues"][0]["allocated"]["cpu"] == reason["used"]
    assert reason["message"] == "queue q has too little quota left: asked for cpu 5, used cpu 2 of cpu 6"


def test_what_counts_as_used_beside_what_is_used_is_said(ask: Any) -> None:
    promised = [pod_group("p", 1, queue="q", minResources={"cpu": "4"})]
    leaving = [pod_group("l", 1, queue="r"), pod("l", "l", 4, node="n1", deleted=True), pod("s", "l", 1, node="n1")]
    caps = [queue(name, capability={"cpu": "6"}) for name in "qr"]
    asks = [pod_group("g", 1, queue="q", phase="Pending", minResources={"cpu": "4"}), pod("g", "g", 4)]
    answer = ask("podgroup/g", node("n1", cpu=16), *caps, promised, asks)
    assert answer["reason"]["message"].endswith("used cpu 4 of cpu 6, what was promised to admitted gangs counted")
    after = [pod_group("h", 1, queue="r"), pod("h1", "h", 6)]
    answer = ask("podgroup/h", node("n1", cpu=16), *caps, leaving, after, conf=configuration("allocate", ["gang"]))
    assert answer["reason"]["message"].endswith("used cpu 5 of cpu 6, pods that are leaving counted")


def test_a_queue_is_shown_with_the_limits_that_it_has_and_no_others(ask: Any) -> None:
    cap = queue("q", capability={"cpu": "6"}, guarantee={"resource": {"memory": "1Gi"}})
    answer = ask("podgroup/g", node("n1"), cap, pod_group("g", 2, queue="q"))
    assert [each for each in answer["queues"][0].items() if each[0] in ("capability", "guarantee")] == [
        ("capability", {"cpu": "6"}),
        ("guarantee", {"memory": "1Gi"}),
    ]
    text = as_text(answer)
    assert "queue q, uses nothing, deserves memory 1Gi, may use at most cpu 6, is guaranteed memory 1Gi" in text
    assert "below root, uses nothing\n" in text


def test_where_nothing_computes_what_a_queue_deserves_nothing_is_said_of_it(ask: Any) -> None:
    answer = ask("podgroup/g", node("n1"), pod_group("g", 2), conf=configuration("enqueue, allocate", ["gang"]))
    assert "deserved" not in answer["queues"][0]


def test_an_extra_member_that_waits_does_not_deny_its_gang_the_places_it_has(ask: Any) -> None:
    answer = ask("podgroup/g", node("n1"), pod_group("g", 1), pod("a", "g", 2, node="n1"), pod("b", "g", 3))
    assert answer["reason"]["message"].startswith("1 of 2 members have a place; b needs cpu 3")


def test_members_that_are_held_back_are_named_with_what_holds_them(ask: Any) -> None:
    gated = pod("b", "g", schedulingGates=[{"name": "example.com/later"}])
    answer = ask("podgroup/g", node("n1"), pod_group("g", 2), pod("a", "g"), gated)
    assert answer["members"] == {"fitting": 1, "needed": 2, "failing": {"b": "b is held by a scheduling gate"}}
    assert answer["reason"]["message"] == "1 of 2 pods may be scheduled; b is held by a scheduling gate"


def test_a_submitter_that_others_gate_is_not_counted_among_the_members(ask: Any) -> None:
    role = {"volcano.sh/task-spec": "submitter"}
    gated = pod("s", "g", annotations=role, schedulingGates=[{"name": "example.com/later"}])
    answer = ask("podgroup/g", node("n1"), with_companion("g", "1"), pod("a", "g", node="n1"), gated)
    assert answer["reason"]["message"] == "0 of 1 pods may be scheduled; s is held by a scheduling gate"


def test_a_member_that_no_node_may_be_asked_for_says_why(ask: Any) -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    a_class = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}}
    answer = ask("podgroup/g", node("n1"), pod_group("g"), pod("a", "g", volumes=[claim]), a_class)
    assert answer["members"]["failing"] == {"a": 'persistentvolumeclaim "c" not found'}


def test_who_can_be_made_to_give_room_back_depends_on_the_actions(ask: Any) -> None:
    low = [{**pod_group("r"), "spec": {"minMember": 1, "queue": "default"}}]
    low += [pod(f"r{index}", "r", 2, node="n1") for index in range(2)]
    high = {**pod_group("g", 1), "spec": {"minMember": 1, "queue": "default", "priorityClassName": "high"}}
    objects = [node("n1"), node("n2", unschedulable=True), priority_class("high", 10), low, high, pod("g", "g", 4)]
    tiers = ["priority", "gang", "conformance"], ["predicates", "nodeorder"]

    def holders(actions: str) -> list[bool]:
        found = ask("podgroup/g", *objects, conf=configuration(actions, *tiers))["reason"]["holders"]
        return [each["reclaimable"] for each in found]

    assert holders("enqueue, allocate, backfill") == [False]
    assert holders("enqueue, allocate, preempt") == [True]
