"""What a Ray cluster asks for in all: the sums that its status shows.

Per pod: its regular containers' requests, and limits where a resource has no request. Init containers, overhead and
sidecars that the operator adds are not counted, and replicas count as written, unclamped, as KubeRay's users know it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from muster.api.raycluster import RayCluster
from muster.quantities import format_quantity, units
from muster.ray.start_command import is_gpu


def pod_requests(template: Mapping[str, Any]) -> Counter[str]:
    """What one pod of this template asks for, per resource, in the resource's unit (see `muster.quantities`).

    Raises QuantityError.
    """
    total: Counter[str] = Counter()
    for container in template["spec"]["containers"]:
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        total.update({name: units(quantity, name) for name, quantity in wanted.items()})
    return total


def desired_resources(cluster: RayCluster) -> dict[str, str]:
    """desiredCPU, desiredMemory, desiredGPU and desiredTPU of the status. Raises QuantityError."""
    total = pod_requests(cluster.spec.head_group_spec.template)
    for group in cluster.spec.worker_groups:
        pods = 0 if group.suspend else max(0, group.replicas or 0) * group.hosts
        for name, amount in pod_requests(group.template).items():
            total[name] += amount * pods
    gpus = sum(amount for name, amount in total.items() if is_gpu(name))
    return {
        "desiredCPU": format_quantity(total["cpu"], "cpu"),
        "desiredMemory": format_quantity(total["memory"], "memory"),
        "desiredGPU": format_quantity(gpus, "gpu"),
        "desiredTPU": format_quantity(total["google.com/tpu"], "google.com/tpu"),
    }
