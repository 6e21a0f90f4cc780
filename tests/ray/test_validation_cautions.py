"""What is taken and told."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.ray.validation import ray_cluster_cautions, ray_job_cautions
from tests.integration.ray_manifests import cluster_spec, ray_cluster, ray_job, worker_group


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"replicas": -1, "minReplicas": 1}, "is -1; minReplicas, 1, counts instead"),
        ({"replicas": -5}, "is -5; minReplicas, 0, counts instead"),
        ({"replicas": 9, "maxReplicas": 5}, "is 9; maxReplicas, 5, counts instead"),
        ({"replicas": 5, "maxReplicas": 5}, None),
        ({"replicas": 9, "maxReplicas": None}, None),
        ({"replicas": None, "minReplicas": 2}, None),
        ({"replicas": 0, "minReplicas": 2}, None),  # the API server writes 0 where there is nothing
    ],
)
def test_replicas_that_do_not_count_are_told(fields: dict[str, Any], told: str | None) -> None:
    groups = [worker_group("first"), worker_group("second", **fields)]
    cluster = RayCluster.parse(ray_cluster("demo", *groups))
    job = RayJob.parse(ray_job("demo", rayClusterSpec=cluster_spec(*groups)))
    words = [] if told is None else [f"workerGroupSpecs[1].replicas: {told}"]
    assert [str(caution) for caution in ray_cluster_cautions(cluster)] == [f"spec.{each}" for each in words]
    assert [str(caution) for caution in ray_job_cautions(job)] == [f"spec.rayClusterSpec.{each}" for each in words]


def test_a_job_on_the_cluster_of_others_has_no_replicas() -> None:
    assert ray_job_cautions(RayJob.parse(ray_job("demo", rayClusterSpec=None))) == []
