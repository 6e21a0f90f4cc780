"""The Ray container of a pod: the user's first container, completed with command, environment, port and probes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from muster.ray.environment import ray_container_env
from muster.ray.pod_options import PodOptions
from muster.ray.probes import default_probes
from muster.ray.ray_node import METRICS_PORT, RayNode
from muster.ray.start_command import start_command, start_params

_OPEN_FILES: Final = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}"
_METRICS: Final = "metrics"


def complete_ray_container(
    container: dict[str, Any], node: RayNode, options: PodOptions, *, keep_command: bool = False
) -> None:
    """Complete the container in place.

    What the user's template has is kept: a command that starts Ray itself (or any, with `keep_command`), variables,
    ports, probes. Another command runs before Ray starts. Raises QuantityError for resources that can't be read.
    """
    params = start_params(node, container)
    start = start_command(node, params)
    own = _command_text(container)
    if not keep_command and "ray start" not in own:
        container["command"] = options.shell
        container["args"] = [" && ".join(part for part in (own, f"{_OPEN_FILES}; {start}") if part)]
    container["env"] = ray_container_env(node, options.every_pod.with_env(container.get("env") or []), start)
    _add_metrics_port(container)
    if options.inject_probes:
        for kind, probe in default_probes(node, params["dashboard-agent-listen-port"]).items():
            if container.get(kind) is None:
                container[kind] = probe


def _command_text(container: Mapping[str, Any]) -> str:
    return " ".join([*(container.get("command") or []), *(container.get("args") or [])])


def _add_metrics_port(container: dict[str, Any]) -> None:
    ports = container.get("ports") or []
    if not any(port.get("name") == _METRICS for port in ports):
        container["ports"] = [*ports, {"name": _METRICS, "containerPort": METRICS_PORT}]
