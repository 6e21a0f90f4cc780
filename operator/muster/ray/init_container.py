"""`wait-gcs-ready`: holds a worker back until the head's control service answers."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from muster.ray.pod_options import PodOptions
from muster.ray.ray_node import RayNode

WAIT_RESOURCES: Final = {"cpu": "200m", "memory": "256Mi"}
CONTAINER: Final = "wait-gcs-ready"
INHERITED: Final = ("image", "imagePullPolicy", "securityContext", "env", "volumeMounts")

_WAIT: Final = """
waited=0
until answer=$(ray health-check --address "$1" 2>&1); do
  if [ $waited -ge 120 ]; then echo "$answer"; fi
  echo "$waited s: the control service at $1 does not answer yet"
  sleep 5
  waited=$((waited + 5))
done
"""


def wait_gcs_ready(node: RayNode, ray_container: Mapping[str, Any], options: PodOptions) -> dict[str, Any]:
    """The init container, in the image and environment of the node's Ray container.

    It waits without limit: how long a cluster may take is decided by deadlines of its owner, not here.
    """
    inherited = {key: copy.deepcopy(ray_container[key]) for key in INHERITED if ray_container.get(key) is not None}
    return {
        "name": CONTAINER,
        **inherited,
        "command": options.shell,
        "args": [_WAIT, CONTAINER, node.gcs_address],
        "resources": {"requests": dict(WAIT_RESOURCES), "limits": dict(WAIT_RESOURCES)},
    }
