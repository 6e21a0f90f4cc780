"""What is said of an object of the wrong shape."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.kube.errors import Undecodable
from muster.kube.malformed import MalformedObject, decode_object
from muster.kube.objects import Pod, PodGroup
from muster.kube.resource import PODGROUPS, PODS

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
    assert found == MalformedObject(PODGROUPS, "ns", "x", said, "u", "7")


def test_a_missing_required_field_is_named_with_its_place() -> None:
    body = {"metadata": META, "spec": {"containers": [{"image": "none"}]}}
    found = decode_object(raw(body), msgspec.json.Decoder(Pod), PODS)
    assert isinstance(found, MalformedObject)
    assert found.path_message == "spec.containers[0]: Object missing required field name"


@pytest.mark.parametrize("body", [[], 3, "text", {"metadata": {"name": 5}}])
def test_what_has_no_metadata_is_no_object(body: Any) -> None:
    with pytest.raises(Undecodable):
        decode_object(raw(body), msgspec.json.Decoder(PodGroup), PODGROUPS)
