from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.engine import wire_keys
from muster.engine.kept_pods import KeptPods, worth_keeping
from muster.engine.pod_specs import task_spec
from muster.kube.objects import Pod
from muster.scheduler.specs import TaskSpec
from tests.engine.pod_manifests import pod

NAMES = ("muster", "volcano")
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "rs", "controller": True}
READY = {"type": "Ready", "status": "True"}
BYSTANDER: dict[str, Any] = {
    "scheduler": "default-scheduler",
    "node": "n",
    "phase": "Running",
    "owner": OWNER,
    "status": {
        "startTime": "2026-01-01T00:00:00Z",
        "podIP": "10.0.0.1",
        "conditions": [READY, {"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{"name": "c", "ready": True}],
    },
}


def kept(found: Pod) -> Pod:
    return worth_keeping(found, scheduler_names=NAMES)


def translated(found: Pod) -> TaskSpec | None:
    return task_spec(found, scheduler_names=NAMES, gate="muster.dev/gang")


def test_how_the_containers_of_a_bystander_fare_is_not_kept() -> None:
    status = kept(pod(**BYSTANDER)).status
    assert (status.phase, status.start_time) == ("Running", "2026-01-01T00:00:00Z")
    assert (status.conditions, status.container_statuses, status.pod_ip) == ([], [], None)


def test_of_a_bystander_s_annotations_those_are_kept_that_are_read() -> None:
    found = pod(**BYSTANDER, annotations={"cni/network-status": "…", wire_keys.PREEMPTABLE: "false"})
    assert kept(found).metadata.annotations == {wire_keys.PREEMPTABLE: "false"}


def test_what_threw_a_bystander_out_is_kept() -> None:
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    found = kept(pod(**{**BYSTANDER, "phase": "Failed", "status": {"conditions": [READY, disrupted]}}))
    assert [each.type for each in found.status.conditions] == ["DisruptionTarget"]


WHOLE: dict[str, dict[str, Any]] = {
    "ours": {"scheduler": "volcano"},
    "waiting": {"node": None},
    "nobody's": {"owner": None},
    "a Job's": {"owner": OWNER | {"apiVersion": "batch/v1", "kind": "Job"}},
    "a RayCluster's": {"owner": OWNER | {"apiVersion": "ray.io/v1", "kind": "RayCluster"}},
    "owned and not managed": {"owner": OWNER | {"controller": False}},
    "said to be of a Ray cluster": {"labels": {"ray.io/cluster": "c"}},
    "delegated": {"group": "pg", "annotations": {wire_keys.DELEGATED_AT: "2026-01-01T00:00:00Z"}},
    "cooling down, by annotation": {"annotations": {wire_keys.COOLDOWN_TIME: "1m"}},
    "cooling down, by label": {"labels": {wire_keys.COOLDOWN_TIME: "1m"}},
}


@pytest.mark.parametrize("other", WHOLE.values(), ids=WHOLE.keys())
def test_a_pod_that_somebody_looks_into_is_kept_whole(other: dict[str, Any]) -> None:
    found = pod(**{**BYSTANDER, **other})
    assert kept(found) == found


def test_of_any_pod_s_volumes_those_are_kept_that_are_claims() -> None:
    volumes = [
        {"name": "kube-api-access-x2x7q", "projected": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {}},
    ]
    assert [each.name for each in kept(pod(volumes=volumes)).spec.volumes] == ["data", "scratch"]


KEYS = sorted({each for each in vars(wire_keys).values() if isinstance(each, str) and "/" in each} | {"other"})
WORDS = ["", "7", "true", "false", "*", "5m", "q", "2026-01-01T00:00:00Z"]
NOTES = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(WORDS), max_size=4)
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["PodScheduled", "DisruptionTarget", "Ready"]),
            "status": st.sampled_from(["True", "False", "Unknown"]),
            "reason": st.sampled_from(["Unschedulable", "Other"]),
            "message": st.sampled_from(["", "no room"]),
            "lastTransitionTime": st.sampled_from(["2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"]),
        }
    ),
    max_size=3,
)
STATUSES = st.fixed_dictionaries(
    {"conditions": CONDITIONS, "podIP": st.just("10.0.0.1")},
    optional={
        "reason": st.sampled_from(["Evicted", "OutOfcpu", "Other"]),
        "startTime": st.just("2026-01-01T00:00:03Z"),
        "nominatedNodeName": st.sampled_from(["", "n2"]),
        "resourceClaimStatuses": st.sampled_from([[], [{"name": "gpu", "resourceClaimName": "made"}]]),
    },
)
CLAIM = {"persistentVolumeClaim": {"claimName": "c"}}
VOLUMES = st.sampled_from([[], [{"name": "v"}], [{"name": "v", "ephemeral": {}}, {"name": "w"}], [CLAIM]])
REQUESTS: list[dict[str, Any]] = [{"cpu": "1"}, {"cpu": 1}, {"cpu": 1.0}, {"cpu": "2", "memory": "1Gi"}]


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    return pod(
        name=draw(st.sampled_from(["p", "q"])),
        scheduler=draw(st.sampled_from(["default-scheduler", "muster"])),
        node=draw(st.sampled_from([None, "n", "n2"])),
        phase=draw(st.sampled_from(["Pending", "Running", "Failed", "Succeeded", "Unknown"])),
        owner=draw(st.sampled_from([None, OWNER, OWNER | {"uid": "other"}, OWNER | {"apiVersion": "batch/v1"}])),
        requests=draw(st.sampled_from(REQUESTS)),
        gates=draw(st.sampled_from([(), ("muster.dev/gang",), ("other",)])),
        labels=draw(NOTES),
        annotations=draw(NOTES),
        status=draw(STATUSES),
        volumes=draw(VOLUMES),
        resourceClaims=draw(st.sampled_from([[], [{"name": "gpu", "resourceClaimTemplateName": "t"}]])),
        deleted=draw(st.booleans()),
    )


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("word", WORDS)
def test_no_annotation_of_a_bystander_that_is_read_is_left_out(key: str, word: str) -> None:
    found = pod(**BYSTANDER, annotations={key: word}, gates=(wire_keys.QUEUE_ALLOCATION_GATE,))
    assert translated(kept(found)) == translated(found)


def test_the_claims_to_devices_that_were_made_for_a_bystander_are_kept() -> None:
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made"}]}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    found = pod(**{**BYSTANDER, "status": status}, resourceClaims=claims)
    assert translated(kept(found)) == translated(found)


@given(pods())
@settings(max_examples=300)
def test_the_scheduler_hears_the_same_of_what_is_kept_as_of_the_whole(found: Pod) -> None:
    assert translated(kept(found)) == translated(found)
    assert repr(translated(kept(found))) == repr(translated(found)), "also what does not count as a difference"


@given(st.lists(pods(), max_size=6))
@settings(max_examples=100)
def test_the_scheduler_hears_the_same_of_pods_that_hold_parts_in_common(found: list[Pod]) -> None:
    keep, known = KeptPods(NAMES), dict[str, Pod]()
    for each in found:
        known[each.key] = keep(each, known.get(each.key))
        assert translated(known[each.key]) == translated(each)
