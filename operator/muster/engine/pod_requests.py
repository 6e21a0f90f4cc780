"""What a pod takes from a node, as the kubelet counts it (KEP-753, KEP-2837).

Init containers run one after the other, beside the sidecars (restartable init containers) started before them; then the
containers run together beside all sidecars. The pod needs the largest of these moments, and its overhead on top. Limits
stand in for requests that are absent. Requests of the whole pod, where set, take the place of its containers' sum.
"""

from __future__ import annotations

from muster.engine.amounts import Amounts, amounts, largest, total
from muster.kube.objects import Container, PodSpec, ResourceRequirements
from muster.scheduler.resources import CPU, MEMORY

_ASSUMED: Amounts = {CPU: 100, MEMORY: 200 * 1024**2}
"""What kube-scheduler's scores count for a container that asks for none."""
_NOTHING: Amounts = {}


def pod_requests(spec: PodSpec, path: str = "spec") -> Amounts:
    """Compute a pod's requests, `pods: 1` included. Raises TranslationError naming the field under `path`."""
    needed = _needed(spec, path, _NOTHING)
    needed = {name: amount for name, amount in needed.items() if amount}
    needed["pods"] = 1
    return needed


def assumed_requests(spec: PodSpec, path: str = "spec") -> tuple[int, int]:
    """The milli-CPU and bytes by which a pod would need more if no container were silent about what it needs.

    kube-scheduler counts them where it looks for the emptiest node, and nowhere else.
    """
    if not any(_is_silent(each.resources) for each in (*spec.containers, *spec.init_containers)):
        return (0, 0)
    asked, all_told = _needed(spec, path, _NOTHING), _needed(spec, path, _ASSUMED)
    return (all_told.get(CPU, 0) - asked.get(CPU, 0), all_told.get(MEMORY, 0) - asked.get(MEMORY, 0))


def _is_silent(resources: ResourceRequirements) -> bool:
    requests, limits = resources.requests or {}, resources.limits or {}
    return any(name not in requests and name not in limits for name in _ASSUMED)


def _needed(spec: PodSpec, path: str, default: Amounts) -> Amounts:
    """What the pod needs, if a container that does not name a resource needs the default of it."""
    moments, sidecars = _initial_moments(spec, path, default)
    running = [
        {**default, **_requests(one.resources, _at(path, "containers", index))}
        for index, one in enumerate(spec.containers)
    ]
    needed = largest([*moments, total([*running, sidecars])])
    if spec.resources is not None:
        needed.update(_requests(spec.resources, path))
    return total([needed, amounts(spec.overhead, f"{path}.overhead")])


def _initial_moments(spec: PodSpec, path: str, default: Amounts) -> tuple[list[Amounts], Amounts]:
    """What is needed at each init container's turn, and by all sidecars together."""
    moments: list[Amounts] = []
    sidecars: Amounts = {}
    for index, container in enumerate(spec.init_containers):
        own = {**default, **_requests(container.resources, _at(path, "initContainers", index))}
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
