"""The Job that takes a deleted cluster's state out of its Redis.

Its pod is the head's Ray container with another command: image, variables, mounts and place are the head's, for from
there the Redis is in reach. It is small, and no member of a gang: the default scheduler places it, so that no queue
that is full, and no gang that waits, holds up the end of a cluster.
"""

from __future__ import annotations

from typing import Any, Final

from muster.api.raycluster import RayCluster
from muster.ray import labels, names
from muster.ray.owner import owner_reference
from muster.ray.pod_options import PodOptions
from muster.ray.pods import head_pod

Manifest = dict[str, Any]

ACTIVE_SECONDS: Final = 300
"""How long the Job may take."""
RESOURCES: Final = {"cpu": "200m", "memory": "256Mi"}
_KEPT_SECONDS: Final = 30
_POD_FIELDS: Final = (
    "affinity",
    "dnsConfig",
    "dnsPolicy",
    "hostAliases",
    "hostNetwork",
    "imagePullSecrets",
    "nodeName",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "securityContext",
    "tolerations",
    "volumes",
)
_CONTAINER_FIELDS: Final = (
    "name",
    "image",
    "imagePullPolicy",
    "envFrom",
    "volumeMounts",
    "securityContext",
    "workingDir",
)
_PATIENCE: Final = (
    {"name": "RAY_redis_db_connect_retries", "value": "120"},
    {"name": "RAY_redis_db_connect_wait_milliseconds", "value": "500"},
)
_NOT_NEEDED: Final = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_ENABLE_K8S_TOKEN_AUTH")
"""The Secret with the token may be gone by then, and no Ray node is asked."""

PROGRAM: Final = """\
from ray._private.gcs_utils import cleanup_redis_storage
import os
from urllib.parse import urlparse

first = os.environ.get("RAY_REDIS_ADDRESS", "").partition(",")[0]
redis = urlparse(first if "://" in first else f"redis://{first}")
username = os.environ.get("REDIS_USERNAME") or redis.username
done = cleanup_redis_storage(
    host=redis.hostname,
    port=redis.port or 6379,
    password=os.environ.get("REDIS_PASSWORD") or redis.password or "",
    use_ssl=redis.scheme == "rediss",
    storage_namespace=os.environ["RAY_external_storage_namespace"],
    **({"username": username} if username else {}),
)
raise SystemExit(0 if done else 1)
"""


def cleanup_job(cluster: RayCluster, options: PodOptions, *, owned: bool = True) -> Manifest:
    """The Job. Raises QuantityError when the head's resources can't be read.

    A Job that is not `owned` goes by itself once it has ended: one with an owner that is deleted in the foreground
    would be taken away before it has begun.
    """
    meta = cluster.metadata
    told = {labels.CLUSTER: meta.name, labels.NODE_TYPE: labels.REDIS_CLEANUP, labels.CREATED_BY: labels.OPERATOR}
    metadata: Manifest = {
        "name": names.redis_cleanup_job(meta.name),
        "namespace": meta.namespace,
        "labels": told,
        "annotations": {labels.REDIS_CLEANUP_OF: meta.uid or ""},
    }
    spec: Manifest = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": ACTIVE_SECONDS,
        "podFailurePolicy": {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },
        "template": _template(cluster, options),
    }
    if owned:
        metadata["ownerReferences"] = [owner_reference(cluster)]
    else:
        spec["ttlSecondsAfterFinished"] = _KEPT_SECONDS
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _template(cluster: RayCluster, options: PodOptions) -> Manifest:
    head = head_pod(cluster, "", options=options)
    told = {**head["metadata"]["labels"], labels.NODE_TYPE: labels.REDIS_CLEANUP}
    spec = {field: head["spec"][field] for field in _POD_FIELDS if head["spec"].get(field)}
    ray = head["spec"]["containers"][0]
    env = [variable for variable in ray["env"] if variable["name"] not in _NOT_NEEDED]
    own = {variable["name"] for variable in _PATIENCE}
    container = {
        **{field: ray[field] for field in _CONTAINER_FIELDS if ray.get(field)},
        "command": options.shell,
        "args": ['exec python -c "$0"', PROGRAM],
        "env": [*(variable for variable in env if variable["name"] not in own), *map(dict, _PATIENCE)],
        "resources": {"requests": dict(RESOURCES), "limits": dict(RESOURCES)},
    }
    spec |= {"containers": [container], "restartPolicy": "Never"}
    account = cluster.spec.head_group_spec.template["spec"].get("serviceAccountName")
    spec |= {"serviceAccountName": account} if account else {"automountServiceAccountToken": False}
    return {"metadata": {"labels": told}, "spec": spec}
