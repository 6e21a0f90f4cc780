"""Ray's own autoscaler: a container of the head pod that sets how many workers there are.

It reads the RayCluster, writes `replicas` and `scaleStrategy.workersToDelete` of its worker groups, and does that as
the pod's service account (see `muster.ray.autoscaler_access`). What the user's `autoscalerOptions` say replaces the
container's image, resources, command, arguments and security context; variables and mounts are added to its own.

The idle time-outs and the upscaling mode are not put into the pod: the autoscaler reads them from the RayCluster.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from muster.api.raycluster import RayCluster, RayClusterSpec
from muster.api.raycluster_options import AutoscalerOptions
from muster.ray import labels
from muster.ray.authentication import give_token
from muster.ray.pod_options import PodOptions

CONTAINER: Final = "autoscaler"
RESOURCES: Final = {"cpu": "500m", "memory": "512Mi"}

_START: Final = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
_LOGS: Final = "ray-logs"
_LOGS_PATH: Final = "/tmp/ray"  # noqa: S108 - where Ray writes its logs
_READ_FROM_THE_CLUSTER: Final = ("idleTimeoutSeconds", "upscalingMode")


def is_version_2(spec: RayClusterSpec) -> bool:
    """Whether the second autoscaler is asked for by its own field. It replaces pods, so that no kubelet must."""
    options = spec.autoscaler_options
    return spec.autoscaling and options is not None and options.version == "v2"


def restarted_workers(spec: RayClusterSpec) -> list[str]:
    """The groups whose workers their kubelets start again though the first autoscaler, by its own field, looks after
    them: it takes a worker that has been started again for one that it does not know, and never takes it away.
    """
    options = spec.autoscaler_options
    if not spec.autoscaling or options is None or options.version != "v1":
        return []
    return [
        group.group_name
        for group in spec.worker_groups
        if (group.template.get("spec") or {}).get("restartPolicy") != "Never"
    ]


def never_restarted(pod_spec: dict[str, Any]) -> None:
    """Make this the spec of a pod that the second autoscaler looks after."""
    pod_spec["restartPolicy"] = "Never"


def autoscaler_resources(spec: RayClusterSpec) -> dict[str, Any] | None:
    """The `resources` of the autoscaler's container; None for a cluster without one."""
    if not spec.autoscaling:
        return None
    options = spec.autoscaler_options
    if options is not None and options.resources is not None:
        return options.resources
    return {"requests": dict(RESOURCES), "limits": dict(RESOURCES)}


def said_of_autoscaler(spec: RayClusterSpec, *, is_head: bool) -> dict[str, Any] | None:
    """What the cluster's spec says about the autoscaler that shows in a pod; None where nothing does."""
    if not spec.autoscaling:
        return None
    if not is_head:
        return {"version": "v2"} if is_version_2(spec) else None
    options = spec.autoscaler_options.dump() if spec.autoscaler_options is not None else {}
    return {key: value for key, value in options.items() if key not in _READ_FROM_THE_CLUSTER}


def add_autoscaler(pod_spec: dict[str, Any], cluster: RayCluster, account: str, options: PodOptions) -> None:
    """Add the container to a head pod whose containers are the user's, Ray's first and completed.

    `account` is the service account that may do the autoscaler's work.
    """
    ray_container: dict[str, Any] = pod_spec["containers"][0]
    said = cluster.spec.autoscaler_options or AutoscalerOptions()
    container = autoscaler_container(cluster.spec, ray_container.get("image"), options)
    give_token(cluster, pod_spec, container)
    _share_logs(pod_spec, ray_container, container)
    pod_spec["containers"] = [*pod_spec["containers"], container]
    pod_spec["serviceAccountName"] = account
    if said.version:
        wanted = {"name": "RAY_enable_autoscaler_v2", "value": "true" if said.version == "v2" else "false"}
        ray_container["env"] = [*(ray_container.get("env") or []), wanted]


def autoscaler_container(spec: RayClusterSpec, image: str | None, options: PodOptions) -> dict[str, Any]:
    """The container by itself; `image` is Ray's, for a user who names none."""
    said = spec.autoscaler_options or AutoscalerOptions()
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": image if said.image is None else said.image,
        "imagePullPolicy": said.image_pull_policy or "IfNotPresent",
        "command": options.shell if said.command is None else said.command,
        "args": [_START] if said.args is None else said.args,
        "env": [*_environment(), *(said.env or [])],
        "resources": autoscaler_resources(spec),
    }
    if said.env_from:
        container["envFrom"] = said.env_from
    if said.volume_mounts:
        container["volumeMounts"] = said.volume_mounts
    if said.security_context is not None:
        container["securityContext"] = said.security_context
    if container["image"] is None:
        del container["image"]
    return copy.deepcopy(container)


def _environment() -> list[dict[str, Any]]:
    return [
        _from_field("RAY_CLUSTER_NAME", f"metadata.labels['{labels.CLUSTER}']"),
        _from_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace"),
        _from_field("RAY_HEAD_POD_NAME", "metadata.name"),
        {"name": "KUBERAY_CRD_VER", "value": "v1"},
        # For users who start it by a command of their own.
        {"name": "KUBERAY_GEN_AUTOSCALER_START_CMD", "value": _START},
    ]


def _from_field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _share_logs(pod_spec: dict[str, Any], ray_container: dict[str, Any], autoscaler: dict[str, Any]) -> None:
    """Ray shows what the autoscaler writes, so both have one /tmp/ray: the user's where Ray's container mounts one."""
    shared = _mount(ray_container)
    if shared is None:
        shared = {"name": _LOGS, "mountPath": _LOGS_PATH}
        volumes = pod_spec.get("volumes") or []
        if not any(volume.get("name") == _LOGS for volume in volumes):
            pod_spec["volumes"] = [*volumes, {"name": _LOGS, "emptyDir": {}}]
        ray_container["volumeMounts"] = [*(ray_container.get("volumeMounts") or []), shared]
    if _mount(autoscaler) is None:
        autoscaler["volumeMounts"] = [*(autoscaler.get("volumeMounts") or []), dict(shared)]


def _mount(container: Mapping[str, Any]) -> Mapping[str, Any] | None:
    mounts = container.get("volumeMounts") or []
    return next((mount for mount in mounts if str(mount.get("mountPath")).rstrip("/") == _LOGS_PATH), None)
