"""What stands on the cluster: nodes, and pods of Deployments as their controllers and kubelets leave them."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from bench import manifests
from tests.cluster.kwok import ANNOTATION

NAMESPACES: Final = tuple(f"team-{number}" for number in range(10))
"""The namespaces of the pods."""

_NODE_CPUS: Final = 32
_ZONES: Final = 3
_REPLICAS: Final = 20
"""Pods of one Deployment: they are alike, and those of no other one are."""
_BEGUN: Final = "2026-01-01T00:00:00Z"


def node(index: int) -> dict[str, Any]:
    """A node of 32 CPUs in one of three zones, for kwok to play its kubelet."""
    body = manifests.node(node_name(index), _NODE_CPUS)
    body["metadata"]["annotations"] = ANNOTATION
    body["metadata"]["labels"] |= {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "general-32",
        "topology.kubernetes.io/zone": f"zone-{index % _ZONES}",
    }
    return body


def node_name(index: int) -> str:
    """The name of a node, counted from 0."""
    return f"n{index:05d}"


def namespace(index: int) -> str:
    """Where a pod lives; a Deployment is in one namespace."""
    return NAMESPACES[index // _REPLICAS % len(NAMESPACES)]


def pod(index: int, node: str) -> dict[str, Any]:
    """A pod that somebody has bound to this node."""
    app = _app(index)
    revision = _digest(app)[:10]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-{revision}", "uid": f"{app}-{revision}"}
    return {
        "metadata": {
            "name": f"{app}-{revision}-{index:05d}",
            "labels": {
                "app.kubernetes.io/name": app,
                "app.kubernetes.io/version": "1.4.2",
                "pod-template-hash": revision,
                "team": namespace(index),
            },
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "nodeName": node,
            "schedulerName": "default-scheduler",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 30,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000},
            "containers": [_container(app)],
            "volumes": [{"name": "configuration", "configMap": {"name": app}}, {"name": "scratch", "emptyDir": {}}],
        },
    }


def running_status(index: int) -> dict[str, Any]:
    """The status that the kubelet of the pod's node has written last."""
    app = _app(index)
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    address = f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"
    return {
        "phase": "Running",
        "startTime": _BEGUN,
        "hostIP": "192.0.2.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "qosClass": "Burstable",
        "conditions": [{"type": one, "status": "True", "lastTransitionTime": _BEGUN} for one in types],
        "containerStatuses": [
            {
                "name": "main",
                "image": _image(app),
                "imageID": f"registry.example.com/{app}@sha256:{_digest(app)}",
                "containerID": f"containerd://{_digest(str(index))}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": _BEGUN}},
            }
        ],
    }


def _container(app: str) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    variables = {"LOG_LEVEL": "info", "DATABASE": f"{app}.database.svc", "REGION": "north", "WORKERS": "4"}
    return {
        "name": "main",
        "image": _image(app),
        "args": ["serve", "--port=8080", f"--name={app}"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {
            "requests": {"cpu": "500m", "memory": "1Gi"},
            "limits": {"memory": "2Gi"},
        },
        "readinessProbe": probe,
        "livenessProbe": probe,
        "volumeMounts": [
            {"name": "configuration", "mountPath": "/etc/app", "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - nothing runs
        ],
    }


def _app(index: int) -> str:
    return f"app-{index // _REPLICAS}"


def _image(app: str) -> str:
    return f"registry.example.com/{app}:1.4.2"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
