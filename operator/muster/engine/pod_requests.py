"""What a pod takes from a node, as the kubelet counts it (KEP-753, KEP-2837).

Init containers run one after the other, beside the sidecars (restartable init containers) started before them; then the
containers run together beside all sidecars. The pod needs the largest of these moments, and its overhead on top. Limits
stand in for requests that are absent. Requests of the whole pod, where set, take the place of its containers' sum.
"""

from __future__ import annotations

from muster.engine.amounts import Amounts, amounts, largest, total
from muster.kube.objects import Container, PodSpec, ResourceRequirements


def pod_requests(spec: PodSpec, path: str = "spec") -> Amounts:
    """Compute a pod's requests, `pods: 1` included. Raises TranslationError naming the field under `path`."""
    moments, sidecars = _initial_moments(spec, path)
    running = [_requests(one.resources, _at(path, "containers", index)) for index, one in enumerate(spec.containers)]
    needed = largest([*moments, total([*running, sidecars])])
    if spec.resources is not None:
        needed.update(_requests(spec.resources, path))
    needed = total([needed, amounts(spec.overhead, f"{path}.overhead")])
    needed = {name: amount for name, amount in needed.items() if amount}
    needed["pods"] = 1
    return needed


def _initial_moments(spec: PodSpec, path: str) -> tuple[list[Amounts], Amounts]:
    """What is needed at each init container's turn, and by all sidecars together."""
    moments: list[Amounts] = []
    sidecars: Amounts = {}
    for index, container in enumerate(spec.init_containers):
        own = _requests(container.resources, _at(path, "initContainers", index))
        if _is_sidecar(container):
            sidecars = total([sidecars, own])
            moments.append(sidecars)
        else:
            moments.append(total([sidecars, own]))
    return moments, sidecars


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _requests(resources: ResourceRequirements, path: str) -> Amounts:
    limits = amounts(resources.limits, f"{path}.resources.limits")
    return {**limits, **amounts(resources.requests, f"{path}.resources.requests")}


def _at(path: str, field: str, index: int) -> str:
    return f"{path}.{field}[{index}]"
