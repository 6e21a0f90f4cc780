"""Whole-job retries: each on a cluster of its own, never two at once, and the last one counts."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api, Manifest
from tests.e2e.observer import Observer
from tests.e2e.rayjobs import wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

pytestmark = pytest.mark.node


@pytest.mark.long
def test_a_failing_job_is_tried_as_often_as_it_may_and_attempts_do_not_overlap(
    api: Api, target: Target, namespace: str, observer: Observer
) -> None:
    job = ray_job(
        "stubborn",
        namespace,
        ray_image=target.ray_image,
        entrypoint='python -c "raise SystemExit(3)"',
        workers=1,
        backoffLimit=2,
    )
    api.apply([job])

    status = wait_for_deployment_status(api, "stubborn", namespace, "Failed", within=600)

    assert (status["jobStatus"], status["reason"], status["failed"]) == ("FAILED", "AppFailed", 3)
    assert most_clusters_with_nodes_at_once(observer) == 1
    assert len(clusters_seen(observer)) == 3


def clusters_seen(observer: Observer) -> set[str]:
    """The clusters of which a pod was ever seen."""
    return {cluster for seen in observer.of("Pod") if (cluster := cluster_of(seen.object))}


def most_clusters_with_nodes_at_once(observer: Observer) -> int:
    """Of how many clusters pods held nodes at the same time, at most."""
    holding: dict[str, str] = {}
    most = 0
    for seen in observer.of("Pod"):
        cluster = cluster_of(seen.object)
        if not cluster:
            continue
        if seen.change != "DELETED" and holds_a_node(seen.object):
            holding[seen.name] = cluster
        else:
            holding.pop(seen.name, None)
        most = max(most, len(set(holding.values())))
    return most


def holds_a_node(pod: Manifest) -> bool:
    """Whether a pod takes room on a node: one that has ended takes none, though it is still there."""
    ended = (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
    return bool(pod["spec"].get("nodeName")) and not ended


def cluster_of(pod: dict[str, object]) -> str:
    """The Ray cluster that a pod belongs to; empty for others."""
    metadata = pod["metadata"]
    assert isinstance(metadata, dict)
    return str((metadata.get("labels") or {}).get("ray.io/cluster", ""))
