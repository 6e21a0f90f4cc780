"""Which Go programs the cluster is made of, and the module that each is built from.

Programs of one module are a group: they share a small module of ours, since the dependencies of different groups clash.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.cluster import versions


@dataclass(frozen=True)
class ModuleGroup:
    """Programs that are built from one version of one Go module.

    `programs` maps a program's name to its package; `stamps` maps a Go variable to the value that the linker sets.
    `staging` is the version of the libraries that the module itself replaces by folders of its own repository, which a
    dependent module has to name instead.
    """

    name: str
    module: str
    version: str
    programs: dict[str, str]
    stamps: dict[str, str] = field(default_factory=dict)
    staging: str | None = None


def _kubernetes_stamps(version: str) -> dict[str, str]:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return {f"k8s.io/component-base/version.{key}": value for key, value in values.items()}


_KUBERNETES_PROGRAMS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubeadm",
    "kubectl",
)

GROUPS: tuple[ModuleGroup, ...] = (
    ModuleGroup("etcd", "go.etcd.io/etcd/server/v3", versions.ETCD, {"etcd": "go.etcd.io/etcd/server/v3"}),
    ModuleGroup(
        "kubernetes",
        "k8s.io/kubernetes",
        versions.KUBERNETES,
        {name: f"k8s.io/kubernetes/cmd/{name}" for name in _KUBERNETES_PROGRAMS},
        stamps=_kubernetes_stamps(versions.KUBERNETES),
        staging="v0." + versions.KUBERNETES.removeprefix("v1."),
    ),
    ModuleGroup("kind", "sigs.k8s.io/kind", versions.KIND, {"kind": "sigs.k8s.io/kind"}),
    ModuleGroup(
        "crictl",
        "sigs.k8s.io/cri-tools",
        versions.CRICTL,
        {"crictl": "sigs.k8s.io/cri-tools/cmd/crictl"},
        stamps={"sigs.k8s.io/cri-tools/pkg/version.Version": versions.CRICTL},
    ),
    ModuleGroup("coredns", "github.com/coredns/coredns", versions.COREDNS, {"coredns": "github.com/coredns/coredns"}),
    ModuleGroup("kwok", "sigs.k8s.io/kwok", versions.KWOK, {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
)

CONTROL_PLANE: tuple[str, ...] = ("etcd", "kube-apiserver")
"""What the smallest control plane needs; `kube-controller-manager` and `kwok` come when asked for."""


def group_of(program: str) -> ModuleGroup:
    """Return the group that builds the program; KeyError for a program that the harness does not know."""
    for group in GROUPS:
        if program in group.programs:
            return group
    raise KeyError(program)
