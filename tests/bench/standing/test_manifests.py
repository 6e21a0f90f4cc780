"""Pods as those of many Deployments are."""

from __future__ import annotations

from typing import Any

from bench.standing.manifests import namespace, pod


def _without_name(index: int) -> dict[str, Any]:
    body = pod(index, "n00000")
    del body["metadata"]["name"]
    return body


def test_pods_of_a_deployment_are_alike_and_in_one_namespace() -> None:
    assert _without_name(0) == _without_name(19)
    assert namespace(0) == namespace(19)


def test_pods_of_two_deployments_differ() -> None:
    assert _without_name(19) != _without_name(20)


def test_no_two_pods_have_one_name() -> None:
    names = {(namespace(index), pod(index, "n00000")["metadata"]["name"]) for index in range(1000)}
    assert len(names) == 1000
