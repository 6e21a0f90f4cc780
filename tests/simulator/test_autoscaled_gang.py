"""A cluster that Ray's autoscaler sizes, from its spec to its places: the least number at once, others one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from muster.cli import app
from muster.ray.gang import ray_cluster_pod_group
from muster.ray.gang_membership import GangMembership
from muster.ray.pods import head_pod, worker_pod
from tests.ray.ray_objects import limits, ray_cluster, template, worker_group

GANG = GangMembership("ray-demo-pg", queue="q")


def manifests(cpu_of_queue: str, nodes: int) -> list[Any]:
    """A head with its autoscaler (1.5 CPU), four workers of 1 CPU of which one is the least, nodes of 2 CPU."""
    made = ray_cluster(
        head={"template": template(resources=limits(cpu="1"))},
        workers=[worker_group(replicas=4, minReplicas=1, template=template(resources=limits(cpu="1")))],
        metadata={"labels": {"volcano.sh/queue-name": "q"}},
        enableInTreeAutoscaling=True,
    )
    allocatable = {"cpu": "2", "memory": "8Gi", "pods": "10"}
    scheduling = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    return [
        *(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{n}"}, "status": {"allocatable": allocatable}}
            for n in range(nodes)
        ),
        {**scheduling, "metadata": {"name": "q"}, "spec": {"weight": 1, "capability": {"cpu": cpu_of_queue}}},
        ray_cluster_pod_group(made),
        head_pod(made, "head", GANG),
        *(worker_pod(made, made.spec.worker_groups[0], f"worker-{n}", GANG) for n in range(4)),
    ]


@pytest.mark.parametrize(
    ("cpu_of_queue", "nodes", "bound", "why_others_wait"),
    [
        pytest.param("2400m", 4, 0, "never", id="the queue is too small for head, autoscaler and the least workers"),
        pytest.param("2500m", 4, 2, "quota", id="just the least"),
        pytest.param("3600m", 4, 3, "quota", id="one more"),
        pytest.param("100", 2, 3, "room", id="as many as the nodes hold"),
        pytest.param("100", 1, 0, "never", id="a cluster too small for the least"),
        pytest.param("100", 4, 5, None, id="all"),
    ],
)
def test_workers_beyond_the_least_are_placed_one_by_one(
    tmp_path: Path, cpu_of_queue: str, nodes: int, bound: int, why_others_wait: str | None
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(yaml.safe_dump_all(manifests(cpu_of_queue, nodes)))
    done = CliRunner().invoke(app, ["simulate", "-o", "json", str(path)])
    assert done.exit_code == 0
    (cycle,) = json.loads(done.stdout)["cycles"]
    assert len(cycle["bindings"]) == bound
    reason = cycle["podGroups"]["default/ray-demo-pg"]["reason"]
    assert (reason and reason["class"]) == why_others_wait
