"""The probes of a Ray container. Which question Ray can answer depends on its version."""

from __future__ import annotations

import re
from typing import Any, Final

from muster.ray.ray_node import DASHBOARD_AGENT_PORT, DASHBOARD_PORT, RayNode

_HTTP_HEALTH_SINCE: Final = (2, 53, 0)
_LIVENESS: Final = {"initialDelaySeconds": 30, "periodSeconds": 5, "successThreshold": 1, "failureThreshold": 120}
_READINESS: Final = {"initialDelaySeconds": 10, "periodSeconds": 5, "successThreshold": 1, "failureThreshold": 10}
_VERSION: Final = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[-+].*)?")


def default_probes(node: RayNode, agent_port: str) -> dict[str, dict[str, Any]]:
    """livenessProbe and readinessProbe. `agent_port` is what the node's dashboard-agent-listen-port says."""
    question = _http(agent_port) if answers_over_http(node.ray_version) else _command(node, agent_port)
    timeout = {"timeoutSeconds": 5 if node.is_head else 2}
    return {
        "livenessProbe": {**question, **timeout, **_LIVENESS},
        "readinessProbe": {**question, **timeout, **_READINESS},
    }


def answers_over_http(ray_version: str) -> bool:
    """Whether this Ray answers for its health at one HTTP address; False when the version is absent or unreadable."""
    match = _VERSION.fullmatch(ray_version.strip())
    return match is not None and tuple(int(part) for part in match.groups()) >= _HTTP_HEALTH_SINCE


def _http(agent_port: str) -> dict[str, Any]:
    port = int(agent_port) if agent_port.isdecimal() and len(agent_port) <= 5 else DASHBOARD_AGENT_PORT
    return {"httpGet": {"path": "/api/healthz", "port": port}}


def _command(node: RayNode, agent_port: str) -> dict[str, Any]:
    checks = [_wget(2, agent_port, "api/local_raylet_healthz")]
    if node.is_head:
        checks.append(_wget(10, node.start_params.get("dashboard-port") or str(DASHBOARD_PORT), "api/gcs_healthz"))
    return {"exec": {"command": ["bash", "-c", " && ".join(checks)]}}


def _wget(timeout: int, port: str, path: str) -> str:
    return f"wget --tries 1 -T {timeout} -q -O- http://localhost:{port}/{path} | grep success"
