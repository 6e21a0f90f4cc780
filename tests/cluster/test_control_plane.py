"""The level `control-plane`, run for real."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes.client
import kubernetes.config
import pytest

from tests.cluster import control_plane as control_plane_module
from tests.cluster import versions
from tests.cluster.api_access import wait_until
from tests.cluster.control_plane import ControlPlane, ProgramEndedError, crd_documents
from tests.cluster.ports import free_ports
from tests.cluster.process import background_programs

PODS = "/api/v1/namespaces/{}/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

# Each of them starts one, also where no fixture says so.
pytestmark = pytest.mark.control_plane


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "localhost/busybox:1"}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def fake_pod(name: str) -> dict[str, Any]:
    return pod(name, nodeName="fake-0")


def test_the_api_server_is_ready_and_of_the_pinned_version(control_plane: ControlPlane) -> None:
    assert control_plane.is_ready()
    assert control_plane.api.get("/version")["gitVersion"] == versions.KUBERNETES


def test_the_repositorys_custom_resources_are_served(control_plane: ControlPlane) -> None:
    groups = {group["name"] for group in control_plane.api.get("/apis")["groups"]}
    assert {"ray.io", "scheduling.volcano.sh"} <= groups


def test_a_pod_can_be_created_without_a_controller_manager(control_plane: ControlPlane, namespace: str) -> None:
    made = control_plane.api.create(PODS.format(namespace), pod("p"))
    assert made["status"]["phase"] == "Pending"


def test_a_node_is_ready_untainted_and_of_the_given_size(control_plane: ControlPlane) -> None:
    name = "size-of-node"
    made = control_plane.add_node(name, cpu="8", extended={"nvidia.com/gpu": "2"}, labels={"zone": "a"})
    assert made["status"]["allocatable"] == {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"}
    assert made["metadata"]["labels"] == {"zone": "a", "kubernetes.io/hostname": name}
    assert "taints" not in made["spec"]
    control_plane.api.delete(f"/api/v1/nodes/{name}")


def test_rbac_refuses_a_user_until_it_grants(control_plane: ControlPlane, namespace: str) -> None:
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    control_plane.api.create(f"{rbac}/roles", {"metadata": {"name": "viewer"}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": f"viewers-{namespace}"}
    kubeconfig = control_plane.kubeconfig_for("someone", groups=(subject["name"],))
    with kubernetes.config.new_client_from_config(str(kubeconfig)) as client:
        someone = kubernetes.client.CoreV1Api(client)
        with pytest.raises(kubernetes.client.ApiException, match="403"):
            someone.list_namespaced_pod(namespace)
        binding = {"metadata": {"name": "viewers"}, "roleRef": role, "subjects": [subject]}
        control_plane.api.create(f"{rbac}/rolebindings", binding)
        wait_until(lambda: may_list_pods(someone, namespace), "the role is granted", 10)


def may_list_pods(user: kubernetes.client.CoreV1Api, namespace: str) -> bool:
    try:
        user.list_namespaced_pod(namespace)
    except kubernetes.client.ApiException:
        return False
    return True


def test_service_account_tokens_are_issued_and_accepted(control_plane: ControlPlane, namespace: str) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    control_plane.api.create(accounts, {"metadata": {"name": "operator"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = control_plane.api.create(f"{accounts}/operator/token", request)["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status = control_plane.api.create("/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:operator"


@pytest.fixture(scope="module")
def disturbed() -> Iterator[ControlPlane]:
    """A second control plane, for what the others could not bear."""
    with ControlPlane.start(crds=False) as plane:
        yield plane


def test_two_control_planes_run_side_by_side(control_plane: ControlPlane, disturbed: ControlPlane) -> None:
    assert control_plane.url != disturbed.url
    assert control_plane.is_ready()
    assert disturbed.is_ready()


def test_a_watch_from_forgotten_history_is_answered_410(disturbed: ControlPlane) -> None:
    old = disturbed.api.get(CONFIG_MAPS)["metadata"]["resourceVersion"]
    for number in range(3):
        disturbed.api.create(CONFIG_MAPS, {"metadata": {"name": f"c{number}"}})
    disturbed.compact_history()
    disturbed.restart_api_server()
    event = disturbed.api.get(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&resourceVersion={old}")
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_a_stopped_api_server_refuses_and_comes_back_with_its_data(disturbed: ControlPlane) -> None:
    disturbed.api.create(CONFIG_MAPS, {"metadata": {"name": "kept"}})
    disturbed.stop_api_server()
    assert disturbed.api.status("/readyz") == 0
    disturbed.restart_api_server()
    assert disturbed.api.status(f"{CONFIG_MAPS}/kept") == 200


def test_the_full_control_plane_runs_pods_and_jobs_on_fake_nodes(full_control_plane: ControlPlane) -> None:
    api = full_control_plane.api
    full_control_plane.add_node("fake-0")
    api.create(PODS.format("default"), fake_pod("p"))
    path = f"{PODS.format('default')}/p"
    wait_until(lambda: api.get(path)["status"]["phase"] == "Running", "the pod runs", 20)
    assert api.get(path)["spec"]["serviceAccountName"] == "default"

    template = {"spec": {**fake_pod("j")["spec"], "restartPolicy": "Never"}}
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    api.create(jobs, {"metadata": {"name": "j"}, "spec": {"template": template}})
    wait_until(lambda: api.get(f"{jobs}/j")["status"].get("succeeded") == 1, "the Job has succeeded", 30)

    api.create("/api/v1/namespaces", {"metadata": {"name": "short"}})
    api.delete("/api/v1/namespaces/short")
    wait_until(lambda: api.status("/api/v1/namespaces/short") == 404, "the namespace is gone", 20)


def test_a_port_that_another_program_took_meanwhile_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        draws = iter([[taken, *free_ports(3)], [*free_ports(2), taken, *free_ports(1)], free_ports(4)])
        monkeypatch.setattr(control_plane_module, "free_ports", lambda count: next(draws))
        with ControlPlane.start(crds=False) as plane:
            assert plane.is_ready()
            assert str(taken) not in plane.url
    assert next(draws, None) is None


def test_a_program_that_ends_at_once_is_named_with_its_last_words() -> None:
    def start_wrongly() -> None:
        with ControlPlane.start(api_server_flags=["--no-such-flag"]):
            pass

    with pytest.raises(ProgramEndedError, match=r"(?s)kube-apiserver ended:.*unknown flag: --no-such-flag"):
        start_wrongly()


def test_a_folder_without_crds_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no custom resource definitions"):
        crd_documents(tmp_path)


_OWNER = """
from tests.cluster.control_plane import ControlPlane
import sys
with ControlPlane.start(crds=False) as plane:
    print(plane.folder, flush=True)
    sys.stdin.read()
"""


def test_a_control_plane_whose_owner_was_killed_is_gone_after_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A temporary folder of the test's own: else any other run on this machine would be the next start.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-c", _OWNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        owner.kill()
    pids = {program.name: program.pid for program in background_programs(folder)}
    assert set(pids) == {"etcd", "kube-apiserver"}
    assert None not in pids.values()
    with ControlPlane.start(crds=False):
        assert not folder.exists()
        assert not [pid for pid in pids.values() if Path(f"/proc/{pid}/cwd").exists()]
    assert list(tmp_path.iterdir()) == []
