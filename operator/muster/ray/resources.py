"""What a Ray cluster asks for in all: the sums that its status shows.

Per pod: its regular containers' requests, and limits where a resource has no request. Init containers, overhead and
sidecars that the operator adds are not counted, as KubeRay's users know it. Workers are those that there should be, as
many as the same status says, where KubeRay takes `replicas` as it is written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from muster.api.raycluster import RayCluster
from muster.quantities import format_decimal, format_quantity, is_binary, units
from muster.ray.start_command import is_gpu


def pod_requests(template: Mapping[str, Any]) -> Counter[str]:
    """What one pod of this template asks for, per resource, in the resource's unit (see `muster.quantities`).

    Raises QuantityError.
    """
    total: Counter[str] = Counter()
    for container in template["spec"]["containers"]:
        total.update({name: units(quantity, name) for name, quantity in _wanted(container).items()})
    return total


def desired_resources(cluster: RayCluster) -> dict[str, str]:
    """desiredCPU, desiredMemory, desiredGPU and desiredTPU of the status. Raises QuantityError.

    Memory is in the notation, binary or decimal, of the first amount there is: so users find their own numbers again.
    """
    total = pod_requests(cluster.spec.head_group_spec.template)
    for group in cluster.spec.worker_groups:
        for name, amount in pod_requests(group.template).items():
            total[name] += amount * group.desired_pods
    gpus = sum(amount for name, amount in total.items() if is_gpu(name))
    return {
        "desiredCPU": format_quantity(total["cpu"], "cpu"),
        "desiredMemory": _memory(cluster, total["memory"]),
        "desiredGPU": format_quantity(gpus, "gpu"),
        "desiredTPU": format_quantity(total["google.com/tpu"], "google.com/tpu"),
    }


def _memory(cluster: RayCluster, amount: int) -> str:
    templates = [cluster.spec.head_group_spec.template, *(group.template for group in cluster.spec.worker_groups)]
    containers = (container for template in templates for container in template["spec"]["containers"])
    written = (_wanted(container).get("memory", 0) for container in containers)
    first = next((quantity for quantity in written if units(quantity, "memory")), "0Ki")
    return format_quantity(amount, "memory") if is_binary(first) else format_decimal(amount)


def _wanted(container: Mapping[str, Any]) -> dict[str, Any]:
    """What a container requests; where it does not say, its limit."""
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
