from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from muster.ray.pod_options import PodOptions
from muster.ray.redis_cleanup import PROGRAM, cleanup_job
from tests.ray.ray_objects import ray_cluster, template

REDIS = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379", "redisPassword": {"value": "p"}}}


def job(
    *, owned: bool = True, spec: dict[str, Any] | None = None, name: str = "demo", **container: Any
) -> dict[str, Any]:
    head = {"template": template(spec=spec, **container)}
    cluster = ray_cluster(name=name, head=head, **REDIS, authOptions={"mode": "token"})  # type: ignore[arg-type]
    return cleanup_job(cluster, PodOptions(), owned=owned)


def test_the_job_is_its_clusters_and_bounded_in_time() -> None:
    made = job()
    assert made["metadata"]["name"] == "demo-redis-cleanup"
    assert [owner["uid"] for owner in made["metadata"]["ownerReferences"]] == ["uid-1"]
    assert made["metadata"]["labels"]["app.kubernetes.io/created-by"] == "kuberay-operator"
    assert (made["spec"]["backoffLimit"], made["spec"]["activeDeadlineSeconds"]) == (0, 300)
    assert "ttlSecondsAfterFinished" not in made["spec"]
    assert made["spec"]["template"]["metadata"]["labels"]["ray.io/node-type"] == "redis-cleanup"


def test_a_job_without_an_owner_goes_by_itself() -> None:
    made = job(owned=False)
    assert "ownerReferences" not in made["metadata"]
    assert made["spec"]["ttlSecondsAfterFinished"] == 30
    assert made["metadata"]["annotations"] == {"muster.dev/redis-cleanup-of": "uid-1"}


@pytest.mark.parametrize(
    ("name", "made"), [("a" * 53, "a" * 53 + "-redis-cle"), ("a" * 48, "a" * 48 + "-redis-cleanup")]
)
def test_the_name_fits(name: str, made: str) -> None:
    assert job(name=name)["metadata"]["name"] == made


def test_the_pod_is_the_heads_ray_container_with_another_command_in_the_heads_place() -> None:
    place = {
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "high",
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [{"name": "ca", "secret": {"secretName": "ca"}}],
        "initContainers": [{"name": "init"}],
        "containers": [
            {
                "name": "ray",
                "image": "ray:1",
                "env": [{"name": "OWN", "value": "1"}],
                "volumeMounts": [{"name": "ca", "mountPath": "/ca"}],
                "resources": {"limits": {"cpu": 64, "nvidia.com/gpu": 8, "memory": "1Ti"}},
                "ports": [{"containerPort": 6379}],
                "lifecycle": {"preStop": {"exec": {"command": ["ray", "stop"]}}},
            },
            {"name": "sidecar"},
        ],
        "schedulerName": "muster",
        "schedulingGates": [{"name": "mine"}],
        "resourceClaims": [{"name": "gpu"}],
        "restartPolicy": "Always",
    }
    spec = job(spec=place)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert {name: spec[name] for name in ("nodeSelector", "tolerations", "priorityClassName", "imagePullSecrets")} == {
        name: place[name] for name in ("nodeSelector", "tolerations", "priorityClassName", "imagePullSecrets")
    }
    assert place["volumes"][0] in spec["volumes"]  # type: ignore[index]
    assert spec["restartPolicy"] == "Never"
    assert spec["automountServiceAccountToken"] is False
    assert not {"schedulerName", "schedulingGates", "initContainers", "resourceClaims"} & spec.keys()
    small = {"cpu": "200m", "memory": "256Mi"}
    assert container["resources"] == {"requests": small, "limits": small}
    assert not {"ports", "lifecycle", "livenessProbe", "readinessProbe"} & container.keys()
    assert {"name": "ca", "mountPath": "/ca"} in container["volumeMounts"]


def test_the_pod_knows_its_redis_and_asks_for_no_token() -> None:
    (container,) = job()["spec"]["template"]["spec"]["containers"]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert (env["RAY_REDIS_ADDRESS"], env["REDIS_PASSWORD"]) == ("redis:6379", "p")
    assert env["RAY_external_storage_namespace"] == "uid-1"
    assert (env["RAY_redis_db_connect_retries"], env["RAY_redis_db_connect_wait_milliseconds"]) == ("120", "500")
    assert not [name for name in env if "AUTH" in name]


def test_the_heads_own_service_account_is_kept() -> None:
    spec = job(spec={"serviceAccountName": "mine"})["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "mine"
    assert "automountServiceAccountToken" not in spec


@pytest.mark.parametrize(
    ("env", "asked"),
    [
        ({"RAY_REDIS_ADDRESS": "redis:1"}, ("redis", 1, None, "", False)),
        ({"RAY_REDIS_ADDRESS": "redis"}, ("redis", 6379, None, "", False)),
        ({"RAY_REDIS_ADDRESS": "a:1,b:2"}, ("a", 1, None, "", False)),
        ({"RAY_REDIS_ADDRESS": "rediss://u:p@r:7"}, ("r", 7, "u", "p", True)),
        (
            {"RAY_REDIS_ADDRESS": "redis://u:p@r:7", "REDIS_USERNAME": "v", "REDIS_PASSWORD": "q"},
            ("r", 7, "v", "q", False),
        ),
    ],
)
@pytest.mark.parametrize("done", [True, False])
def test_the_program_asks_for_what_the_variables_say(
    tmp_path: Path, env: dict[str, str], asked: tuple[Any, ...], done: bool
) -> None:
    """Where Ray is not: the module that it imports notes what it was asked for. The real one has a test of its own."""
    (tmp_path / "ray" / "_private").mkdir(parents=True)
    noting = f"def cleanup_redis_storage(**asked):\n    print(asked)\n    return {done}\n"
    (tmp_path / "ray" / "_private" / "gcs_utils.py").write_text(noting)
    (container,) = job()["spec"]["template"]["spec"]["containers"]
    command = [*container["command"], *container["args"]]
    assert command[-1] == PROGRAM
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    own = {"PATH": path, "PYTHONPATH": str(tmp_path), "RAY_external_storage_namespace": "n", **env}
    ended = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0 if done else 1, "")
    host, port, username, password, ssl = asked
    wanted = {"host": host, "port": port, "password": password, "use_ssl": ssl, "storage_namespace": "n"}
    assert ended.stdout.strip() == str(wanted | ({"username": username} if username else {}))
