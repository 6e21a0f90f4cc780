"""The `ray start` command of a node: `rayStartParams` plus what the pod itself says, as command line flags.

The rules are those that users of KubeRay rely on: what the group leaves out is taken from the Ray container's resources
(whole CPUs, the memory limit in bytes, GPUs, one well-known accelerator), and a few flags that the cluster needs are
always there. Values go to the command line as the user wrote them, so quoting is the user's business.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from muster.quantities import QuantityError, parse_quantity, whole
from muster.ray.ray_node import DASHBOARD_AGENT_PORT, METRICS_PORT, RayNode

_TAKES_TRUE_OR_FALSE: Final = frozenset({"log-color", "include-dashboard", "include-log-monitor"})
_ACCELERATORS: Final = {"aws.amazon.com/neuroncore": "neuron_cores", "google.com/tpu": "TPU"}
_MIG_SLICE: Final = re.compile(r"nvidia\.com/mig-\d+g\.\d+gb")


def is_gpu(resource: str) -> bool:
    """Whether a container resource of this name is what Ray counts as GPUs (a MIG slice is one)."""
    return resource.endswith("gpu") or _MIG_SLICE.fullmatch(resource) is not None


def start_command(node: RayNode, params: Mapping[str, str]) -> str:
    """The whole command; `params` come from `start_params`."""
    program = "ray start --head" if node.is_head else "ray start"
    return f"{program} {flags(params)}"


def start_params(node: RayNode, container: Mapping[str, Any]) -> dict[str, str]:
    """The node's rayStartParams with everything filled in.

    Raises QuantityError when a resource of the container that is needed can't be read.
    """
    params = dict(node.start_params)
    params.update(_from_group_resources(node.group_resources))
    if node.group_labels:
        params["labels"] = ",".join(f"{key}={value}" for key, value in sorted(node.group_labels.items()))
    _fill_addresses(params, node)
    _fill_resources(params, container.get("resources") or {})
    return params


def flags(params: Mapping[str, str]) -> str:
    """The flags as they stand on the command line."""
    return "".join(_flag(name, params[name]) for name in sorted(params))


def _flag(name: str, value: str) -> str:
    if name in _TAKES_TRUE_OR_FALSE or value.lower() not in ("true", "false"):
        return f" --{name}={value} "
    return f" --{name} " if value.lower() == "true" else ""


def _fill_addresses(params: dict[str, str], node: RayNode) -> None:
    if node.is_head:
        params.setdefault("dashboard-host", "0.0.0.0")  # noqa: S104 - the head service has to reach it
        if node.autoscaling:
            # The autoscaler runs beside Ray, so Ray's own monitor must not.
            params["no-monitor"] = "true"
    else:
        params.setdefault("address", node.gcs_address)
    params.setdefault("metrics-export-port", str(METRICS_PORT))
    params.setdefault("dashboard-agent-listen-port", str(DASHBOARD_AGENT_PORT))
    params["block"] = "true"


def _from_group_resources(resources: Mapping[str, str]) -> dict[str, str]:
    """A group's `resources` map in Ray's words.

    CPU, memory and GPUs are known in capitals too. Amounts that can't be read are left out, as KubeRay leaves them out.
    """
    params: dict[str, str] = {}
    custom: dict[str, Fraction] = {}
    for name, amount in sorted(resources.items()):
        try:
            known = name.lower()
            if known == "cpu":
                params["num-cpus"] = str(whole(amount))
            elif known == "memory":
                params["memory"] = str(whole(amount))
            elif is_gpu(known):
                params["num-gpus"] = str(whole(amount))
            else:
                custom[name] = parse_quantity(amount)
        except QuantityError:
            continue
    if custom:
        params["resources"] = _custom_resources(custom)
    return params


def _fill_resources(params: dict[str, str], resources: Mapping[str, Any]) -> None:
    limits: Mapping[str, Any] = resources.get("limits") or {}
    requests: Mapping[str, Any] = resources.get("requests") or {}
    cpus = whole(limits.get("cpu", 0)) or whole(requests.get("cpu", 0))
    if cpus:
        params.setdefault("num-cpus", str(cpus))
    memory = whole(limits.get("memory", 0))
    if memory:
        params.setdefault("memory", str(memory))
    _fill_accelerators(params, limits)


def _fill_accelerators(params: dict[str, str], limits: Mapping[str, Any]) -> None:
    gpus = next((whole(limits[name]) for name in sorted(limits) if is_gpu(name) and whole(limits[name])), None)
    if gpus is not None:
        params.setdefault("num-gpus", str(gpus))
    found = next((name for name in sorted(limits) if name in _ACCELERATORS and parse_quantity(limits[name])), None)
    custom = _parse_custom_resources(params.get("resources", ""))
    if found is None or custom is None or set(_ACCELERATORS.values()) & custom.keys():
        return
    params["resources"] = _custom_resources(custom | {_ACCELERATORS[found]: parse_quantity(limits[found])})


def _custom_resources(amounts: Mapping[str, Fraction | float]) -> str:
    """Ray's `resources` flag: JSON, quoted for the shell, whole numbers without a fraction."""
    numbers = {name: int(amount) if amount == int(amount) else float(amount) for name, amount in amounts.items()}
    return shlex.quote(json.dumps(numbers, sort_keys=True, separators=(",", ":")))


def _parse_custom_resources(text: str) -> dict[str, Any] | None:
    """The user's own `resources` parameter, out of whatever shell quoting it has; None when it is no JSON object."""
    inner = text.strip("'\"` ").replace('\\"', '"')
    if not inner:
        return {}
    try:
        document = json.loads(inner)
    except (ValueError, RecursionError):
        return None
    numbers = isinstance(document, dict) and all(isinstance(amount, int | float) for amount in document.values())
    return document if numbers else None
