from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from muster.engine.podgroup_patch import LARGEST, crowded_out, pod_group_patch, wanted_annotations
from muster.kube.objects import OwnerReference, PodGroup
from muster.scheduler.outcome import PodGroupStatus
from muster.scheduler.reasons import Code, Reason
from muster.scheduler.specs import Condition, Phase

NOW = 1767225600.0
NOW_TEXT = "2026-01-01T00:00:00Z"
BEFORE = "2025-12-31T00:00:00Z"


def shown(status: dict[str, Any] | None = None, **annotations: str) -> PodGroup:
    meta = {
        "name": "pg",
        "namespace": "ns",
        "uid": "u",
        "annotations": {f"muster.dev/{k}": v for k, v in annotations.items()},
    }
    return msgspec.convert({"metadata": meta, "status": status or {}}, type=PodGroup)


def wanted(phase: Phase = Phase.PENDING, *conditions: Condition, **more: Any) -> PodGroupStatus:
    counts = {"running": 0, "succeeded": 0, "failed": 0} | more
    return PodGroupStatus(phase=phase, conditions=conditions, **counts)


def patch(group: PodGroup, status: PodGroupStatus) -> dict[str, Any] | None:
    return pod_group_patch(group, status, NOW, transition_id=lambda: "new")


def wire(kind: str, status: str, reason: str, message: str | None = None, **more: str) -> dict[str, Any]:
    text = {} if message is None else {"message": message}
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        **text,
        "transitionID": "old",
        "lastTransitionTime": BEFORE,
        **more,
    }


UNSCHEDULABLE = wire("Unschedulable", "True", "NotEnoughResources", "no room")


SAID: dict[str, tuple[PodGroup, PodGroupStatus]] = {
    "the phase": (shown({"phase": "Inqueue"}), wanted(Phase.INQUEUE)),
    "the counters": (shown({"phase": "Running", "running": 2}), wanted(Phase.RUNNING, running=2)),
    "a condition, whatever its time": (
        shown({"phase": "Pending", "conditions": [UNSCHEDULABLE]}),
        wanted(Phase.PENDING, Condition("Unschedulable", True, "NotEnoughResources", "no room", NOW)),
    ),
    "another's condition": (
        shown({"phase": "Pending", "conditions": [wire("Topology", "True", "x")]}),
        wanted(Phase.PENDING),
    ),
}


@pytest.mark.parametrize(("group", "status"), SAID.values(), ids=SAID.keys())
def test_what_is_said_already_is_not_written(group: PodGroup, status: PodGroupStatus) -> None:
    assert patch(group, status) is None


def test_only_what_differs_is_written_under_the_uid() -> None:
    group = shown({"phase": "Inqueue", "running": 1})
    assert patch(group, wanted(Phase.RUNNING, running=1)) == {"metadata": {"uid": "u"}, "status": {"phase": "Running"}}


def test_a_new_condition_has_a_time_and_a_transition() -> None:
    found = patch(shown({"phase": "Pending"}), wanted(Phase.PENDING, Condition("Scheduled", True, "ready")))
    assert found is not None
    assert found["status"] == {
        "conditions": [
            {
                "type": "Scheduled",
                "status": "True",
                "reason": "ready",
                "lastTransitionTime": NOW_TEXT,
                "transitionID": "new",
            }
        ]
    }


def test_a_new_message_keeps_the_time_of_the_transition() -> None:
    group = shown({"phase": "Pending", "conditions": [UNSCHEDULABLE]})
    found = patch(group, wanted(Phase.PENDING, Condition("Unschedulable", True, "NotEnoughResources", "less room")))
    assert found is not None
    assert found["status"]["conditions"] == [{**UNSCHEDULABLE, "message": "less room", "transitionID": "new"}]


def test_a_condition_that_turns_false_says_since_when_and_leaves_the_others_as_they_are() -> None:
    other = wire("Topology", "True", "x")
    group = shown({"phase": "Pending", "conditions": [UNSCHEDULABLE, other]})
    found = patch(
        group, wanted(Phase.PENDING, Condition("Unschedulable", False), Condition("Scheduled", True, "ready"))
    )
    assert found is not None
    kinds = [(each["type"], each["status"], each["lastTransitionTime"]) for each in found["status"]["conditions"]]
    assert kinds == [
        ("Unschedulable", "False", NOW_TEXT),
        ("Topology", "True", BEFORE),
        ("Scheduled", "True", NOW_TEXT),
    ]


def test_a_condition_of_ours_that_is_no_longer_wanted_goes() -> None:
    group = shown({"phase": "Pending", "conditions": [UNSCHEDULABLE]})
    assert patch(group, wanted(Phase.PENDING)) == {"metadata": {"uid": "u"}, "status": {"conditions": []}}


def test_conditions_that_say_nothing_go_and_those_of_others_stay() -> None:
    other = wire("Topology", "True", "x")
    group = shown({"phase": "Pending", "conditions": [{}, {"status": "True"}, other]})
    assert patch(group, wanted(Phase.PENDING)) == {"metadata": {"uid": "u"}, "status": {"conditions": [other]}}


def test_the_reason_is_an_annotation_for_machines() -> None:
    reason = Reason(
        Code.QUEUE_QUOTA, resource="cpu", requested=2000, used=3500, limit=4000, queue="q", nodes=(("x", 2),)
    )
    found = patch(shown({"phase": "Pending"}), wanted(Phase.PENDING, reason=reason))
    assert found is not None
    document = json.loads(found["metadata"]["annotations"]["muster.dev/reason"])
    assert document.pop("message")
    assert document == {
        "code": "QueueQuota",
        "class": "quota",
        "resource": "cpu",
        "requested": "2",
        "used": "3500m",
        "limit": "4",
        "queue": "q",
        "nodes": {"x": 2},
        "wakes": ["the queue frees quota or changes"],
        "advice": "wait",
    }
    again = msgspec.structs.replace(
        shown({"phase": "Pending"}).metadata, annotations=dict(found["metadata"]["annotations"])
    )
    assert (
        patch(
            msgspec.structs.replace(shown({"phase": "Pending"}), metadata=again), wanted(Phase.PENDING, reason=reason)
        )
        is None
    )


def test_a_reason_that_is_over_goes() -> None:
    found = patch(shown({"phase": "Inqueue"}, reason="{}"), wanted(Phase.INQUEUE))
    assert found == {"metadata": {"uid": "u", "annotations": {"muster.dev/reason": None}}}


def test_the_nodes_of_companions_go_with_the_phase_in_one_write() -> None:
    found = patch(shown({"phase": "Pending"}), wanted(Phase.INQUEUE, companions={"submittergroup": "n"}))
    note = '{"submittergroup":"n"}'
    assert found == {
        "metadata": {"uid": "u", "annotations": {"muster.dev/companion-nodes": note}},
        "status": {"phase": "Inqueue"},
    }


def test_since_when_a_gang_is_broken_outlives_us() -> None:
    found = patch(shown({"phase": "Running"}), wanted(Phase.RUNNING, broken_since=NOW))
    assert found is not None
    assert found["metadata"]["annotations"] == {"muster.dev/broken-since": NOW_TEXT}


def test_the_minimum_that_a_gang_met_outlives_us() -> None:
    found = patch(shown({"phase": "Running"}), wanted(Phase.RUNNING, minimum_met=3))
    assert found == {"metadata": {"uid": "u", "annotations": {"muster.dev/minimum-met": "3"}}}
    gone = shown({"phase": "Pending"})
    gone = msgspec.structs.replace(
        gone, metadata=msgspec.structs.replace(gone.metadata, annotations={"muster.dev/minimum-met": "3"})
    )
    assert patch(gone, wanted(Phase.PENDING)) == {
        "metadata": {"uid": "u", "annotations": {"muster.dev/minimum-met": None}}
    }


@pytest.mark.parametrize(("api_version", "cleared"), [("ray.io/v1", True), ("batch.volcano.sh/v1alpha1", False)])
def test_who_set_which_field_is_forgotten_of_pod_groups_that_we_made(api_version: str, cleared: bool) -> None:
    owner = OwnerReference(api_version=api_version, kind="RayJob", name="demo", uid="o", controller=True)
    group = shown({"phase": "Inqueue"})
    group = msgspec.structs.replace(group, metadata=msgspec.structs.replace(group.metadata, owner_references=[owner]))
    assert patch(group, wanted(Phase.INQUEUE)) is None, "no write for that alone"
    written = patch(group, wanted(Phase.RUNNING)) or {}
    assert written["metadata"].get("managedFields") == ([{}] if cleared else None)


def crowded(room: int, **annotations: str) -> PodGroup:
    """A PodGroup whose user's annotation, with ours, leaves so many bytes."""
    ours = sum(len(f"muster.dev/{key}") + len(value) for key, value in annotations.items())
    group = shown({"phase": "Pending"}, **annotations)
    group.metadata.annotations["note"] = "x" * (LARGEST - len("note") - ours - room)
    return group


WAITS = wanted(
    Phase.INQUEUE,
    Condition("Unschedulable", True, "NotEnoughResources", "no room", NOW),
    reason=Reason(Code.NOT_ENOUGH_NODES),
)
NOTED = wanted_annotations(WAITS)["muster.dev/reason"] or ""
LENGTH = len("muster.dev/reason") + len(NOTED)


def test_a_reason_that_just_finds_room_is_written() -> None:
    found = patch(crowded(LENGTH), WAITS)
    assert found is not None
    assert found["metadata"]["annotations"] == {"muster.dev/reason": NOTED}
    assert crowded_out(crowded(LENGTH), WAITS) == []


def test_the_status_is_written_without_a_reason_that_finds_no_room() -> None:
    group = crowded(LENGTH - 1)
    found = patch(group, WAITS)
    assert found is not None
    assert "annotations" not in found["metadata"]
    assert found["status"]["phase"] == "Inqueue"
    assert [each["type"] for each in found["status"]["conditions"]] == ["Unschedulable"]
    assert crowded_out(group, WAITS) == ["muster.dev/reason"]


def test_an_old_reason_goes_when_the_new_one_finds_no_room() -> None:
    found = patch(crowded(LENGTH - 21, reason="old"), WAITS)
    assert found is not None
    assert found["metadata"]["annotations"] == {"muster.dev/reason": None}


def test_an_old_reason_makes_room_for_the_new_one() -> None:
    group = crowded(0, reason=NOTED.replace("NotEnough", "NotEnouqh"))
    found = patch(group, WAITS)
    assert found is not None
    assert found["metadata"]["annotations"] == {"muster.dev/reason": NOTED}


def test_what_is_acted_upon_has_room_before_the_reason() -> None:
    status = wanted(reason=Reason(Code.NOT_ENOUGH_NODES), companions={"s": "n"}, minimum_met=3)
    group = crowded(100)
    found = patch(group, status)
    assert found is not None
    assert found["metadata"]["annotations"] == {
        "muster.dev/companion-nodes": '{"s":"n"}',
        "muster.dev/minimum-met": "3",
    }


def test_a_status_that_stands_but_for_what_finds_no_room_is_not_written_again() -> None:
    group = crowded(LENGTH - 1)
    first = patch(group, WAITS)
    assert first is not None
    status = msgspec.convert({**msgspec.to_builtins(group.status), **first["status"]}, type=type(group.status))
    assert patch(msgspec.structs.replace(group, status=status), WAITS) is None
