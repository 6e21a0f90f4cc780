"""The command lines of the control plane's programs, and why each flag is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SERVICE_RANGE = "10.96.0.0/16"
SERVER_NAMES = ("localhost", "127.0.0.1", "10.96.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")

# Fake pods get addresses of the range reserved for benchmarks (RFC 2544): no machine of the outside has one.
FAKE_POD_RANGE = "198.18.0.0/15"

# Without a controller manager nobody makes the `default` service account of a namespace, without which the
# ServiceAccount plugin refuses every pod; and nobody takes away the not-ready taint that TaintNodesByCondition puts
# on every new node.
_NEEDS_CONTROLLER_MANAGER = ("ServiceAccount", "TaintNodesByCondition")

# One of its kind, that nobody asks for its metrics; its requests are not rationed.
_ALONE = ("--leader-elect=false", "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=500")


@dataclass(frozen=True)
class Options:
    """What a control plane consists of and how it is tuned.

    `controllers` are those that the controller manager runs, in its own words. `scheduler` is kube-scheduler. `crds`
    installs the repository's own; `api_server_flags` come last and so win. The in-flight limits are far above
    Kubernetes' own 400 and 200, since a whole cluster's clients run beside one server here. kwok gives pods addresses
    of `pod_range`. Above `memory_limit` each program spends up to half of its time on collecting garbage: a cluster of
    many thousand pods needs a higher one.
    """

    controller_manager: bool = False
    kwok: bool = False
    crds: bool = True
    max_requests_inflight: int = 3000
    max_mutating_requests_inflight: int = 1500
    api_server_flags: Sequence[str] = ()
    controllers: str = "*"
    scheduler: bool = False
    pod_range: str = FAKE_POD_RANGE
    memory_limit: str = "1GiB"


@dataclass(frozen=True)
class Ports:
    """The loopback ports of one control plane."""

    etcd: int
    etcd_peer: int
    api_server: int
    kwok: int


def environment(options: Options) -> dict[str, str]:
    """Return by what the programs collect garbage: half as often as usual, which spares a twentieth of their work."""
    return {"GOGC": "200", "GOMEMLIMIT": options.memory_limit}


def etcd(binary: Path, folder: Path, ports: Ports) -> list[str]:
    """Return etcd's command line: one member that never waits for the disk, since its data is thrown away."""
    client, peer = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
    return [
        str(binary),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(binary: Path, folder: Path, ports: Ports, options: Options) -> list[str]:
    """Return the API server's command line: RBAC and service-account tokens as in a real cluster, loopback only."""
    disabled = () if options.controller_manager else _NEEDS_CONTROLLER_MANAGER
    return [
        str(binary),
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.api_server}",
        # It refuses to advertise a loopback address and would look for a default route; nobody asks for this one.
        "--advertise-address=192.0.2.1",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder / 'api-server.crt'}",
        f"--tls-private-key-file={folder / 'api-server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--service-account-key-file={folder / 'service-account.pub'}",
        f"--service-account-signing-key-file={folder / 'service-account.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--profiling=false",
        f"--max-requests-inflight={options.max_requests_inflight}",
        f"--max-mutating-requests-inflight={options.max_mutating_requests_inflight}",
        *(f"--disable-admission-plugins={','.join(disabled)}" for _ in disabled[:1]),
        *options.api_server_flags,
    ]


def controller_manager(binary: Path, folder: Path, kubeconfig: Path, options: Options) -> list[str]:
    """Return the controller manager's command line; at its default rate a namespace would wait 5 s for its account."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={folder / 'service-account.key'}",
        f"--root-ca-file={folder / 'ca.crt'}",
        "--use-service-account-credentials=true",
        f"--controllers={options.controllers}",
        *_ALONE,
    ]


def scheduler(binary: Path, kubeconfig: Path) -> list[str]:
    """Return kube-scheduler's command line."""
    return [str(binary), f"--kubeconfig={kubeconfig}", *_ALONE]


def kwok(binary: Path, kubeconfig: Path, stages: Path, ports: Ports, options: Options) -> list[str]:
    """Return kwok's command line: it plays the kubelets of the nodes that carry its annotation."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--config={stages}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
        f"--cidr={options.pod_range}",
        f"--server-address=127.0.0.1:{ports.kwok}",
    ]
