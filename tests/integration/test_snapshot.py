"""`muster snapshot` of a real API server."""

from __future__ import annotations

import asyncio
import json
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from muster.cli import app
from muster.kube.client import ApiClient
from muster.kube.resource import CONFIGMAPS, NAMESPACES, PODGROUPS, PODS
from muster.simulator.collecting import DEPLOYMENTS
from tests.cluster.control_plane import ControlPlane
from tests.integration.ray_manifests import pod_group

pytestmark = pytest.mark.control_plane
SECRET = "hunter2"


async def take(control_plane: ControlPlane, output: Path, *more: str) -> Result:
    arguments = ["snapshot", "--kubeconfig", str(control_plane.kubeconfig), "-o", str(output), *more]
    return await asyncio.to_thread(CliRunner().invoke, app, arguments)


async def test_a_snapshot_holds_what_the_scheduler_reads_with_its_configuration_and_no_secrets(
    control_plane: ControlPlane, api: ApiClient, tmp_path: Path
) -> None:
    place = "snapshot-test"
    await api.create(NAMESPACES, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    container = {"name": "main", "image": "ray", "env": [{"name": "TOKEN", "value": SECRET}]}
    await api.create(
        PODS,
        place,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "g", "note": SECRET}},
            "spec": {"schedulerName": "muster", "containers": [container]},
        },
    )
    await api.create(PODGROUPS, place, pod_group("g", queue="default"))
    await api.create(
        CONFIGMAPS,
        place,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "conf"},
            "data": {"scheduler.yaml": "actions: allocate\ntiers: []\n", "other": SECRET},
        },
    )
    await api.create(DEPLOYMENTS, place, deployment())
    output = tmp_path / "snapshot.zip"
    result = await take(control_plane, output, "--namespace", place, "--deployment", "m")
    assert result.exit_code == 0, result.output
    with zipfile.ZipFile(output) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert [name for name, text in texts.items() if SECRET in text] == []
    assert texts["scheduler.yaml"] == "actions: allocate\ntiers: []\n"
    assert texts["flags.txt"] == "--starvation-timeout=0.0\n"
    simulated = await asyncio.to_thread(CliRunner().invoke, app, ["simulate", str(output), "-o", "json"])
    assert simulated.exit_code == 0, simulated.output
    (cycle,) = json.loads(simulated.stdout)["cycles"]
    assert cycle["pods"][f"{place}/p"]["status"] == "Pending"


def deployment() -> dict[str, object]:
    container = {
        "name": "muster",
        "image": "muster",
        "args": ["run", "--scheduler-configuration=/etc/muster/scheduler.yaml", "--starvation-timeout", "0"],
        "volumeMounts": [{"name": "c", "mountPath": "/etc/muster"}],
    }
    spec = {"containers": [container], "volumes": [{"name": "c", "configMap": {"name": "conf"}}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "m"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "m"}},
            "template": {"metadata": {"labels": {"app": "m"}}, "spec": spec},
        },
    }


async def test_a_configuration_that_is_not_found_is_said_and_the_rest_is_written(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    result = await take(control_plane, tmp_path / "snapshot.zip", "--namespace", "nowhere")
    assert result.exit_code == 0
    assert "left out the configuration of Deployment nowhere/muster" in result.stderr
    with zipfile.ZipFile(tmp_path / "snapshot.zip") as archive:
        assert "scheduler.yaml" not in archive.namelist()


async def test_of_a_config_map_that_is_given_only_the_configuration_goes_in(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    conf, output = tmp_path / "conf.yaml", tmp_path / "snapshot.zip"
    conf.write_text(
        f"kind: ConfigMap\nmetadata: {{name: c, labels: {{note: {SECRET}}}}}\n"
        f"data:\n  other: {SECRET}\n  scheduler.yaml: |\n    actions: allocate\n    tiers: []\n"
    )
    result = await take(control_plane, output, "--conf", str(conf))
    assert result.exit_code == 0
    with zipfile.ZipFile(output) as archive:
        assert archive.read("scheduler.yaml") == b"actions: allocate\ntiers: []\n"
