"""Ray's own autoscaler (its second version) and Muster on one RayCluster: what one writes, the other understands.

Ray's code runs with the rights that the cluster's service account has, and with no others.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from muster.kube.resource import RAYCLUSTERS
from tests.cluster.control_plane import ControlPlane
from tests.integration.observed import Observed
from tests.integration.operators import eventually
from tests.integration.ray_manifests import ray_cluster, template, worker_group
from tests.ray.local_ray import installed_python

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("operator")]

STEP = Path(__file__).with_name("ray_autoscaler.py")
Step = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def ray(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Step:
    """One step of Ray's autoscaler as the cluster's service account: a verb, and what it is about."""
    python = installed_python()
    kubeconfig = yaml.safe_load(
        control_plane.kubeconfig_for(f"system:serviceaccount:{namespace}:demo").read_text(encoding="utf-8")
    )
    user, server = kubeconfig["users"][0]["user"], kubeconfig["clusters"][0]["cluster"]
    address = urlsplit(server["server"])

    def file(data: str, name: str) -> str:
        path = tmp_path / name
        path.write_bytes(base64.b64decode(data))
        return str(path)

    env = {
        **os.environ,
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(address.port),
        "RAY_KUBERAY_CA_CERT_PATH": file(server["certificate-authority-data"], "ca.crt"),
        "RAY_KUBERAY_CLIENT_CERT_PATH": file(user["client-certificate-data"], "client.crt"),
        "RAY_KUBERAY_CLIENT_KEY_PATH": file(user["client-key-data"], "client.key"),
    }

    async def step(verb: str, about: object = None) -> dict[str, Any]:
        command = (str(python), str(STEP), "demo", namespace, verb, json.dumps(about))
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, env=env, stdout=pipe, stderr=pipe)
        said, complaint = await process.communicate()
        assert process.returncode == 0, complaint.decode()[-2000:]
        result: dict[str, Any] = json.loads(said.decode().splitlines()[-1])
        return result

    return step


async def workers(seen: Observed, group: str, number: int) -> set[str]:
    async def right() -> set[str] | None:
        names = {pod["metadata"]["name"] for pod in await seen.pods(group)}
        return names if len(names) == number else None

    return await eventually(right, f"{number} workers in {group}")


async def test_ray_scales_a_cluster_up_and_down(seen: Observed, ray: Step) -> None:
    limited = template()
    limited["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2", "memory": "1Gi"}}
    manifest = ray_cluster(
        "demo",
        worker_group("small", 1, minReplicas=1, maxReplicas=4, template=limited),
        worker_group("hosts", 0, maxReplicas=2, numOfHosts=2, template=limited),
        headGroupSpec={"rayStartParams": {}, "template": limited},
        enableInTreeAutoscaling=True,
        autoscalerOptions={"version": "v2", "idleTimeoutSeconds": 30},
    )
    await seen.api.create(RAYCLUSTERS, seen.namespace, manifest)
    await seen.cluster_state("demo", "ready")
    (first,) = await workers(seen, "small", 1)

    known = await ray("look")
    assert known["errors"] == []
    assert sorted(known["instances"].values()) == ["headgroup", "small"]
    assert known["types"]["small"][:2] == [1, 4]
    assert known["types"]["small"][2]["CPU"] == 2
    assert known["types"]["hosts"][:2] == [0, 4]

    assert (await ray("launch", {"small": 2}))["errors"] == []
    three = await workers(seen, "small", 3)
    assert first in three
    await seen.cluster_state("demo", "ready")

    idle = sorted(three - {first})[0]
    assert (await ray("terminate", [idle]))["errors"] == []
    assert await workers(seen, "small", 2) == three - {idle}
    # As soon as that one is gone Ray takes its name off the list, and goes on.
    assert (await ray("launch", {"small": 1}))["errors"] == []
    grown = await workers(seen, "small", 3)
    assert three - {idle} < grown
    cluster = await seen.get(RAYCLUSTERS, "demo")
    assert cluster is not None
    assert not cluster["spec"]["workerGroupSpecs"][0]["scaleStrategy"]["workersToDelete"]
