"""`muster explain` of a real API server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from muster.cli import app
from muster.explain.kubelet_events import EVENTS
from muster.kube.client import ApiClient
from muster.kube.resource import NAMESPACES, NODES, PODGROUPS, PODS
from tests.cluster.control_plane import ControlPlane
from tests.integration.ray_manifests import pod_group

pytestmark = pytest.mark.control_plane


async def test_what_a_pod_lacks_is_read_from_its_events(control_plane: ControlPlane, api: ApiClient) -> None:
    place, missing = "explain-test", 'MountVolume.SetUp failed for volume "code" : configmap "code" not found'
    await api.create(NAMESPACES, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    await api.create(NODES, None, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "explained"}})
    await api.create(PODGROUPS, place, pod_group("g", queue="default"))
    made = await api.create(
        PODS,
        place,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "g"}},
            "spec": {
                "schedulerName": "muster",
                "nodeName": "explained",
                "containers": [{"name": "main", "image": "ray"}],
            },
        },
    )
    not_set_up = {"type": "PodReadyToStartContainers", "status": "False"}
    await api.patch(PODS, place, "p", {"status": {"conditions": [not_set_up]}}, subresource="status")
    about = {"kind": "Pod", "apiVersion": "v1", "namespace": place, "name": "p", "uid": made["metadata"]["uid"]}
    for name, kind, reason, message in (
        ("p.1", "Warning", "FailedMount", missing),
        ("p.2", "Normal", "Pulled", "the image is there"),
    ):
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about}
        last = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        await api.create(
            EVENTS, place, {**event, "type": kind, "reason": reason, "message": message, "lastTimestamp": last}
        )
    arguments = ["explain", "podgroup/g", "-n", place, "--kubeconfig", str(control_plane.kubeconfig)]
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert result.exit_code == 0, result.output
    assert "its volumes or its network are not set up yet" in result.stdout
    assert f"ago): {missing}" in result.stdout
    assert "the image is there" not in result.stdout
