"""Run by a Python that has Ray: one step of Ray's own autoscaler against the API server, as it runs beside a head.

Usage: ray_autoscaler.py CLUSTER NAMESPACE launch|terminate|look [JSON]. What it sees and what went wrong is printed as
JSON. Ray's code reads the RayCluster and its pods and writes the RayCluster; the decision to scale is the caller's.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main(cluster: str, namespace: str, verb: str, argument: str) -> dict[str, Any]:
    """Do the step; what Ray knows of the cluster after it."""
    from ray.autoscaler._private.kuberay.autoscaling_config import (  # type: ignore[import-not-found]
        AutoscalingConfigProducer,
    )
    from ray.autoscaler.v2.instance_manager.cloud_providers.kuberay.cloud_provider import (  # type: ignore[import-not-found]
        KubeRayProvider,
    )

    provider = KubeRayProvider(cluster, {"namespace": namespace}, gcs_client=None)
    instances = provider.get_non_terminated()
    if verb == "launch":
        provider.launch(json.loads(argument), "request")
    elif verb == "terminate":
        provider.terminate(json.loads(argument), "request")
    config = AutoscalingConfigProducer(cluster, namespace)()
    return {
        "instances": {name: one.node_type for name, one in instances.items()},
        "errors": [str(error) for error in provider.poll_errors()],
        "types": {
            name: [one["min_workers"], one["max_workers"], one["resources"]]
            for name, one in config["available_node_types"].items()
        },
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:4], *(sys.argv[4:] or [""])), default=str) + "\n")
