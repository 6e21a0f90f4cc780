"""The cluster's level `control-plane`: a real API server on etcd, as plain processes of this machine, no containers.

`ControlPlane.start()` is up in seconds, and any number may run side by side, each on ports and in a folder of its own.
It promises a real API server with RBAC, admission, custom resources and watches. It has no kubelet: pods run only when
kwok plays them. Without `controller_manager` nothing collects garbage, runs Jobs or finishes the deletion of a
namespace either; two admission plugins that rely on it are off then (see `control_plane_commands`).
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.cluster import control_plane_commands as commands
from tests.cluster import kwok as kwok_stages
from tests.cluster.api_access import ApiAccess, wait_until
from tests.cluster.binaries import CONTROL_PLANE
from tests.cluster.cache import Cache
from tests.cluster.certificates import CertificateAuthority, signing_key, write_secret
from tests.cluster.control_plane_commands import Options, Ports
from tests.cluster.gobuild import go_binaries
from tests.cluster.kubeconfig import write_kubeconfig
from tests.cluster.ports import free_ports
from tests.cluster.process import Background, background_programs, start, stop_all
from tests.cluster.progress import Steps
from tests.cluster.runs import Runs

LEVEL = "control-plane"
CRDS = Path(__file__).parents[2] / "crds"

_ATTEMPTS = 3


class ControlPlane:
    """A running control plane. `url` is the API server's, `kubeconfig` an administrator's file for it."""

    def __init__(self, folder: Path, options: Options, programs: Mapping[str, Path]) -> None:
        self.folder = folder
        self.options = options
        self._programs = programs
        self._ports = Ports(*free_ports(4))
        self._authority = CertificateAuthority()
        self.url = f"https://127.0.0.1:{self._ports.api_server}"
        self.kubeconfig = self._write_identities()
        self.api = ApiAccess(
            self.url, authority=folder / "ca.crt", certificate=folder / "admin.crt", key=folder / "admin.key"
        )

    @classmethod
    @contextlib.contextmanager
    def start(
        cls,
        *,
        controller_manager: bool = False,
        kwok: bool = False,
        crds: bool = True,
        max_requests_inflight: int = Options.max_requests_inflight,
        max_mutating_requests_inflight: int = Options.max_mutating_requests_inflight,
        api_server_flags: Sequence[str] = (),
        controllers: str = Options.controllers,
        scheduler: bool = False,
        pod_range: str = Options.pod_range,
        memory_limit: str = Options.memory_limit,
    ) -> Iterator[ControlPlane]:
        """Run a control plane for the length of the block; the keywords are explained at `Options`.

        The programs are built first if the cache lacks them (minutes, shown on standard error). Nothing is left
        afterwards. What an earlier run that was killed left is removed.
        """
        options = Options(
            controller_manager=controller_manager,
            kwok=kwok,
            crds=crds,
            max_requests_inflight=max_requests_inflight,
            max_mutating_requests_inflight=max_mutating_requests_inflight,
            api_server_flags=api_server_flags,
            controllers=controllers,
            scheduler=scheduler,
            pod_range=pod_range,
            memory_limit=memory_limit,
        )
        programs = build(options)
        with Runs(LEVEL).own() as folder:
            plane = launch(folder, options, programs)
            with plane.api:
                yield plane

    def kubeconfig_for(self, user: str, *, groups: tuple[str, ...] = ()) -> Path:
        """Return a kubeconfig of another user, who may do what RBAC grants to the name and the groups."""
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        identity = self._authority.issue(user, groups=groups)
        authority = self._authority.certificate
        return write_kubeconfig(path, server=self.url, authority=authority, user=user, identity=identity)

    def add_node(
        self,
        name: str,
        *,
        cpu: str = "4",
        memory: str = "16Gi",
        pods: str = "110",
        extended: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        taints: tuple[Mapping[str, str], ...] = (),
    ) -> dict[str, Any]:
        """Create a Ready node with these resources (`extended`: GPUs and the like); kwok runs it when it is on."""
        metadata = {
            "name": name,
            "annotations": kwok_stages.ANNOTATION,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
        }
        self.api.create("/api/v1/nodes", {"metadata": metadata, "spec": {"taints": list(taints)}})
        amounts = {"cpu": cpu, "memory": memory, "pods": pods, **(extended or {})}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        return self.api.merge(f"/api/v1/nodes/{name}/status", {"status": status})

    def compact_history(self) -> None:
        """Make etcd forget all past revisions, so that a list or watch from one of them is answered 410.

        The API server's watch cache still knows recent ones: `restart_api_server()` makes it forget them too.
        """
        key = base64.b64encode(b"\0").decode()
        revision = self._etcd("kv/range", {"key": key, "range_end": key, "count_only": True})["header"]["revision"]
        self._etcd("kv/compaction", {"revision": revision, "physical": True})

    def stop_api_server(self) -> None:
        """Kill the API server: clients see connections refused until `restart_api_server()`."""
        self._program("kube-apiserver").stop(signal.SIGKILL)

    def restart_api_server(self) -> None:
        """Kill the API server and start it on the same port and the same etcd; returns when it is ready."""
        self.stop_api_server()
        self._start_api_server()

    def is_ready(self) -> bool:
        """Tell whether the API server answers that it is ready."""
        return self.api.status("/readyz") == 200

    def bring_up(self) -> None:
        """Start everything that the options ask for; TimeoutError or ProgramEndedError when it does not come up."""
        self._start("etcd", commands.etcd(self._programs["etcd"], self.folder, self._ports))
        self._start_api_server()
        if self.options.crds:
            self.api.install_crds(crd_documents())
        if self.options.controller_manager:
            binary = self._programs["kube-controller-manager"]
            command = commands.controller_manager(binary, self.folder, self.kubeconfig, self.options)
            self._start("kube-controller-manager", command)
            self._wait("kube-controller-manager", self._has_default_account, "the default service account exists")
        if self.options.scheduler:
            self._start("kube-scheduler", commands.scheduler(self._programs["kube-scheduler"], self.kubeconfig))
        if self.options.kwok:
            stages = kwok_stages.stages(Cache(), Steps())
            command = commands.kwok(self._programs["kwok"], self.kubeconfig, stages, self._ports, self.options)
            self._start("kwok", command)
            self._wait("kwok", self._kwok_is_ready, "kwok is ready")

    def _start_api_server(self) -> None:
        binary = self._programs["kube-apiserver"]
        self._wait("etcd", self._etcd_is_ready, "etcd is ready")
        self._start("kube-apiserver", commands.api_server(binary, self.folder, self._ports, self.options))
        self._wait("kube-apiserver", self.is_ready, "the API server is ready")

    def _start(self, name: str, command: list[str]) -> None:
        start(name, command, self.folder, environment=commands.environment(self.options))

    def _wait(self, program: str, holds: Callable[[], bool], what: str) -> None:
        wait_until(holds, what, 60.0, check=lambda: _check_alive(self._program(program)))

    def _program(self, name: str) -> Background:
        return Background(self.folder, name)

    def _has_default_account(self) -> bool:
        return self.api.status("/api/v1/namespaces/default/serviceaccounts/default") == 200

    def _etcd_is_ready(self) -> bool:
        return _answers(f"http://127.0.0.1:{self._ports.etcd}/health")

    def _kwok_is_ready(self) -> bool:
        return _answers(f"http://127.0.0.1:{self._ports.kwok}/healthz")

    def _etcd(self, call: str, body: Mapping[str, Any]) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self._ports.etcd}/v3/{call}"
        answer = httpx.post(url, json=body, timeout=10, trust_env=False).raise_for_status()
        document: dict[str, Any] = answer.json()
        return document

    def _write_identities(self) -> Path:
        (self.folder / "ca.crt").write_bytes(self._authority.certificate)
        self._authority.issue("kube-apiserver", hosts=commands.SERVER_NAMES).write(self.folder, "api-server")
        private, public = signing_key()
        write_secret(self.folder / "service-account.key", private)
        (self.folder / "service-account.pub").write_bytes(public)
        administrator = self._authority.issue("admin", groups=("system:masters",))
        administrator.write(self.folder, "admin")
        return write_kubeconfig(
            self.folder / "kubeconfig",
            server=self.url,
            authority=self._authority.certificate,
            user="admin",
            identity=administrator,
        )


class ProgramEndedError(RuntimeError):
    """A program of the control plane ended by itself; the message holds the end of its log."""


def build(options: Options) -> dict[str, Path]:
    """Return the programs that the options need; builds what the cache lacks of them and of what they read."""
    names = [*CONTROL_PLANE]
    names += ["kube-controller-manager"] if options.controller_manager else []
    names += ["kube-scheduler"] if options.scheduler else []
    if options.kwok:
        names.append("kwok")
        kwok_stages.stages(Cache(), Steps())
    return go_binaries(names)


def launch(folder: Path, options: Options, programs: Mapping[str, Path]) -> ControlPlane:
    """Bring a control plane up in the folder of a run; with other ports if another program took one meanwhile.

    A failure leaves processes behind, which end with the run: see `Runs`.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        plane = ControlPlane(folder, options, programs)
        try:
            plane.bring_up()
            return plane
        except ProgramEndedError as error:
            plane.api.close()
            if "address already in use" not in str(error) or attempt == _ATTEMPTS:
                raise
            stop_all(background_programs(folder), signal.SIGKILL)
            shutil.rmtree(folder / "etcd", ignore_errors=True)
    raise AssertionError("unreachable")


def crd_documents(folder: Path = CRDS) -> list[dict[str, Any]]:
    """Return the custom resource definitions in the folder; FileNotFoundError if there is none."""
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise FileNotFoundError(f"no custom resource definitions in {folder}")
    return [document for file in files for document in yaml.safe_load_all(file.read_text()) if document]


def _check_alive(program: Background) -> None:
    if program.pid is None:
        raise ProgramEndedError(f"{program.name} ended:\n{program.last_lines()}")


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2, trust_env=False).is_success
    except httpx.TransportError:
        return False
