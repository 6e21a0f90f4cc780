"""What is said of an object of the wrong shape."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.kube.errors import Undecodable
from muster.kube.malformed import MalformedObject, decode_object
from muster.kube.objects import Job, ObjectMeta, Pod, PodGroup, PodGroupCondition, PodGroupStatus, Queue
from muster.kube.resource import JOBS, PODGROUPS, PODS, QUEUES

META = {"name": "x", "namespace": "ns", "uid": "u", "resourceVersion": "7"}


def raw(body: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(body))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"minMember": "3"}, "spec.minMember: Expected int | null, got str"),
        ({"minTaskMember": {"head": "1"}}, "spec.minTaskMember[...]: Expected int, got str"),
        ({"subGroupPolicy": [{}, 3]}, "spec.subGroupPolicy[1]: Expected object, got int"),
        ({"queue": 7}, "spec.queue: Expected str | null, got int"),
        ([], "spec: Expected object, got array"),
    ],
)
def test_the_path_and_the_fault_are_named(spec: Any, said: str) -> None:
    found = decode_object(raw({"metadata": META, "spec": spec}), msgspec.json.Decoder(PodGroup), PODGROUPS)
    whole = ObjectMeta(name="x", namespace="ns", uid="u", resource_version="7")
    assert found == MalformedObject(PODGROUPS, "ns", "x", said, "u", "7", whole)
    assert str(found) == f"PodGroup ns/x can't be read: {said}; correct it or delete it"


def test_a_missing_required_field_is_named_with_its_place() -> None:
    body = {"metadata": META, "spec": {"containers": [{"image": "none"}]}}
    found = decode_object(raw(body), msgspec.json.Decoder(Pod), PODS)
    assert isinstance(found, MalformedObject)
    assert found.path_message == "spec.containers[0]: Object missing required field name"


@pytest.mark.parametrize("body", [[], 3, "text", {"metadata": {"name": 5}}])
def test_what_has_no_metadata_is_no_object(body: Any) -> None:
    with pytest.raises(Undecodable):
        decode_object(raw(body), msgspec.json.Decoder(PodGroup), PODGROUPS)


TOLD = {"type": "Scheduled", "status": "True"}
SCHEDULED = PodGroupCondition(type="Scheduled", status="True")


@pytest.mark.parametrize(
    ("status", "read"),
    [
        ({"conditions": [{}, TOLD]}, PodGroupStatus(conditions=[PodGroupCondition(), SCHEDULED])),
        ({"conditions": [{"type": "Scheduled"}]}, PodGroupStatus(conditions=[PodGroupCondition(type="Scheduled")])),
        ({"conditions": [TOLD, {"type": 5}], "phase": "Running"}, PodGroupStatus(phase="Running")),
        ({"conditions": "none", "running": 2}, PodGroupStatus(running=2)),
        ({"conditions": None, "running": "many", "failed": 1}, PodGroupStatus(failed=1)),
        ({"phase": [], "running": "many", "failed": {}}, PodGroupStatus()),
        ("Running", PodGroupStatus()),
        (None, PodGroupStatus()),
    ],
)
def test_of_a_status_that_others_have_spoilt_the_rest_is_read(status: Any, read: PodGroupStatus) -> None:
    body = {"metadata": META, "spec": {"minMember": 3}, "status": status}
    found = decode_object(raw(body), msgspec.json.Decoder(PodGroup), PODGROUPS)
    assert isinstance(found, PodGroup)
    assert (found.key, found.spec.min_member, found.status) == ("ns/x", 3, read)


def test_a_queues_condition_needs_no_type() -> None:
    body = {"metadata": META, "status": {"state": "Closed", "conditions": [{}]}}
    found = decode_object(raw(body), msgspec.json.Decoder(Queue), QUEUES)
    assert isinstance(found, Queue)
    assert found.status.state == "Closed"


@pytest.mark.parametrize(
    ("kind", "resource", "body", "said"),
    [
        (PodGroup, PODGROUPS, {"spec": {"minMember": "3"}, "status": 5}, "spec.minMember: Expected int"),
        (Queue, QUEUES, {"status": {"state": 5}}, "status.state: Expected str"),
        (Job, JOBS, {"status": {"active": "some"}}, "status.active: Expected int"),
    ],
)
def test_what_is_needed_and_can_not_be_read_makes_an_object_malformed(
    kind: type[Any], resource: Any, body: dict[str, Any], said: str
) -> None:
    found = decode_object(raw({"metadata": META, **body}), msgspec.json.Decoder(kind), resource)
    assert isinstance(found, MalformedObject)
    assert found.path_message.startswith(said)
