"""The writes that an API server has answered, by its own metrics."""

from __future__ import annotations

import re
from collections import Counter

from tests.cluster.control_plane import ControlPlane

_COUNTED = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_VERBS = ("POST", "PUT", "PATCH", "DELETE", "APPLY")
# Nobody but kwok writes nodes here, as kubelets do, and all there is writes Leases.
_LEFT_OUT = ("leases", "nodes")


def writes_by_kind(plane: ControlPlane) -> Counter[str]:
    """All so far, refused ones too, by verb and resource (`PATCH pods/status`), without Leases and nodes."""
    return parsed(plane.api.text("/metrics"))


def parsed(metrics: str) -> Counter[str]:
    """The writes in the text of the server's metrics."""
    found: Counter[str] = Counter()
    for line in _COUNTED.finditer(metrics):
        label = dict(_LABEL.findall(line[1]))
        if label["verb"] in _VERBS and label["resource"] not in _LEFT_OUT:
            subresource = f"/{label['subresource']}" if label.get("subresource") else ""
            found[f"{label['verb']} {label['resource']}{subresource}"] += int(float(line[2]))
    return found
