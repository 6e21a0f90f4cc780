"""Which Go programs the cluster is made of, and the Go package of each.

All belong to one Go module of ours, in the folder `programs`: what they have in common (gRPC, protobuf, Kubernetes'
client, Prometheus' client) is fetched and compiled once. See `lock_programs` for whose versions win.
"""

from __future__ import annotations

from pathlib import Path

from tests.cluster import versions

MODULE = Path(__file__).with_name("programs")
"""The folder of the Go module."""

MODULE_NAME = "muster.dev/programs"
KUBERNETES_MODULE = "k8s.io/kubernetes"

REQUIREMENTS: dict[str, str] = {
    KUBERNETES_MODULE: versions.KUBERNETES,
    "go.etcd.io/etcd/server/v3": versions.ETCD,
    "github.com/coredns/coredns": versions.COREDNS,
    "sigs.k8s.io/kind": versions.KIND,
    "sigs.k8s.io/kwok": versions.KWOK,
}
"""The version of each Go module that programs come from."""

_KUBERNETES_PROGRAMS = (
    *("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubeadm", "kubectl"),
)
_OWN_PROGRAMS = ("coredns", "etcd", "pause")

PROGRAMS: dict[str, str] = {
    **{name: f"{KUBERNETES_MODULE}/cmd/{name}" for name in _KUBERNETES_PROGRAMS},
    **{name: f"{MODULE_NAME}/{name}" for name in _OWN_PROGRAMS},
    "kind": "sigs.k8s.io/kind",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
"""The package of each program. Go names a program after the last part of its package's path."""

CONTROL_PLANE: tuple[str, ...] = ("etcd", "kube-apiserver")
"""What the smallest control plane needs; `kube-controller-manager` and `kwok` come when asked for."""


def stamps() -> dict[str, str]:
    """Return the Go variables that the linker sets, so that programs know which version they are of."""
    major, minor, _ = versions.KUBERNETES.removeprefix("v").split(".", 2)
    values = {"gitVersion": versions.KUBERNETES, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return {f"k8s.io/component-base/version.{key}": value for key, value in values.items()}
