"""Paths of objects and collections."""

from __future__ import annotations

import pytest

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
        (PODS, ("ns", "a/b?c"), "/api/v1/namespaces/ns/pods/a%2Fb%3Fc"),
    ],
)
def test_an_object_has_its_path(resource: Resource, arguments: tuple[str | None, ...], path: str) -> None:
    assert resource.path(*arguments) == path


@pytest.mark.parametrize("arguments", [("ns", ""), ("", "p"), ("ns", ".."), ("..", "p"), (None, "p")])
def test_a_name_that_would_lead_elsewhere_is_refused(arguments: tuple[str | None, str]) -> None:
    with pytest.raises(ValueError, match="name"):
        PODS.path(*arguments)


def test_the_core_group_has_a_bare_version() -> None:
    assert (PODS.api_version, RAYJOBS.api_version) == ("v1", "ray.io/v1")
