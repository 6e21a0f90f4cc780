"""Paths of objects and collections."""

from __future__ import annotations

import pytest

from muster.kube.errors import ImpossibleName, NotFound
from muster.kube.resource import JOBS, NODES, PODS, QUEUES, RAYJOBS, Resource


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("ns",), "/api/v1/namespaces/ns/pods"),
        (PODS, ("ns", "p"), "/api/v1/namespaces/ns/pods/p"),
        (PODS, ("ns", "p", "binding"), "/api/v1/namespaces/ns/pods/p/binding"),
        (NODES, (None, "n"), "/api/v1/nodes/n"),
        (NODES, ("ignored", "n"), "/api/v1/nodes/n"),
        (JOBS, ("ns",), "/apis/batch/v1/namespaces/ns/jobs"),
        (RAYJOBS, ("ns", "j", "status"), "/apis/ray.io/v1/namespaces/ns/rayjobs/j/status"),
        (QUEUES, (None, "q"), "/apis/scheduling.volcano.sh/v1beta1/queues/q"),
        (PODS, ("ns", "a b?c#d"), "/api/v1/namespaces/ns/pods/a%20b%3Fc%23d"),
    ],
)
def test_an_object_has_its_path(resource: Resource, arguments: tuple[str | None, ...], path: str) -> None:
    assert resource.path(*arguments) == path


@pytest.mark.parametrize("name", ["", ".", "..", "../../../x", "a/b", "/", "a%2Fb", "%", "\ud800"])
def test_a_name_that_would_lead_elsewhere_is_none_that_an_object_can_have(name: str) -> None:
    for resource, arguments in ((PODS, ("ns", name)), (PODS, (name, "p")), (PODS, (name,)), (NODES, (None, name))):
        with pytest.raises(ImpossibleName, match="is not the name of an object") as refusal:
            resource.path(*arguments)
        assert isinstance(refusal.value, NotFound)
        assert str(refusal.value).isprintable()


def test_a_namespaced_object_has_no_path_without_its_namespace() -> None:
    with pytest.raises(ValueError, match="needs its namespace"):
        PODS.path(None, "p")


def test_the_core_group_has_a_bare_version() -> None:
    assert (PODS.api_version, RAYJOBS.api_version) == ("v1", "ray.io/v1")
