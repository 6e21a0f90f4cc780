"""A RayCluster as users write them, and how to change one thing about it."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]
Path = list[str | int]

HEAD: Path = ["spec", "headGroupSpec"]
WORKER: Path = ["spec", "workerGroupSpecs", 0]
CONTAINER: Path = ["template", "spec", "containers", 0]

VALID: Json = {
    "metadata": {"name": "demo", "namespace": "default", "labels": {"volcano.sh/queue-name": "ray-batch"}},
    "spec": {
        "rayVersion": "2.52.0",
        "headGroupSpec": {
            "rayStartParams": {"dashboard-host": "127.0.0.1", "num-cpus": "0"},
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "ray-head",
                            "image": "rayproject/ray:2.52.0",
                            "env": [{"name": "A", "value": "1"}],
                            "ports": [{"containerPort": 6379, "name": "gcs-server"}],
                            "resources": {"limits": {"cpu": 1, "memory": "2Gi"}, "requests": {"cpu": "500m"}},
                        }
                    ]
                }
            },
        },
        "workerGroupSpecs": [
            {
                "groupName": "small-group",
                "replicas": 2,
                "minReplicas": 1,
                "maxReplicas": 5,
                "rayStartParams": {},
                "template": {"spec": {"containers": [{"name": "ray-worker", "resources": {"limits": {"cpu": "1"}}}]}},
            }
        ],
    },
}

DELETE = object()


def with_fields(*fields: tuple[Path, object]) -> Json:
    """The valid cluster with some fields set, or taken away."""
    result = copy.deepcopy(VALID)
    for path, value in fields:
        target: Any = result
        for step in path[:-1]:
            target = target[step] if isinstance(step, int) else target.setdefault(step, {})
        if value is DELETE:
            del target[path[-1]]
        elif isinstance(target, list) and path[-1] == len(target):
            target.append(value)
        else:
            target[path[-1]] = value
    return result
