"""What goes into a snapshot, what stays out, and that a simulation of it decides as one of the manifests does."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from muster.engine.podgroup_specs import pod_group_spec
from muster.engine.storage_specs import claim_spec, storage_class_spec, volume_spec
from muster.kube.objects import ApiObject, PodGroup
from muster.kube.resource import (
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODGROUPS,
    RAYJOBS,
    STORAGECLASSES,
    Resource,
)
from muster.scheduler.conf import DEFAULT
from muster.simulator.input_error import InputError
from muster.simulator.manifests import TYPES, Found, read_manifests
from muster.simulator.model import build_model
from muster.simulator.report import cycle_document
from muster.simulator.simulation import Pace, Simulation
from muster.simulator.snapshot import RayObject, is_kept, snapshot_zip
from muster.simulator.sources import read_sources
from tests.simulator.manifests import gang, node, pod, pod_group, priority_class, queue, text

TAKEN = 1767225600.0
SECRET = "hunter2"


def objects_of(tmp_path: Path, *manifests: Any) -> dict[Resource, list[ApiObject]]:
    file = tmp_path / "manifests.yaml"
    file.write_bytes(text(*manifests))
    found = read_manifests(read_sources([str(file)]).documents)
    return {resource: [each.object for each in objects] for resource, objects in found.objects.items()}


def test_what_is_read_from_a_snapshot_is_what_went_in(tmp_path: Path) -> None:
    objects = objects_of(
        tmp_path,
        [node("n1", taints=[{"key": "a", "effect": "NoSchedule"}]), queue("q", weight=3, parent="root")],
        [priority_class("high", 5), *gang("g", 2, tolerations=[{"operator": "Exists"}], nodeSelector={"zone": "a"})],
        pod("old", "g", node="n1", deleted=True, status={"startTime": "2026-01-01T00:00:00Z"}),
    )
    path = tmp_path / "snapshot.zip"
    path.write_bytes(snapshot_zip(objects, b"actions: allocate", TAKEN))
    sources = read_sources([str(path)])
    found = read_manifests(sources.documents)
    assert {resource: [each.object for each in found.objects[resource]] for resource in TYPES} == objects
    assert sources.configuration == (f"{path}:scheduler.yaml", b"actions: allocate")
    assert not found.passed_over


def test_secrets_environments_and_whole_manifests_in_annotations_stay_out(tmp_path: Path) -> None:
    containers = [
        {
            "name": "main",
            "image": "ray",
            "env": [{"name": "TOKEN", "value": SECRET}],
            "args": [f"--password={SECRET}"],
            "command": ["sh", "-c", SECRET],
            "resources": {"requests": {"cpu": "1"}},
        }
    ]
    companion = [{"role": "submittergroup", "podSpec": {"containers": [{**containers[0]}]}}]
    notes = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "vault.example.com/token": SECRET}
    group = pod_group("g")
    group["metadata"]["annotations"] = {**notes, "muster.dev/companions": json.dumps(companion)}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": SECRET}}
    objects = objects_of(tmp_path, pod("p", "g", annotations=notes, containers=containers), group, secret)
    content = snapshot_zip(objects, None, TAKEN)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert [name for name, found in texts.items() if SECRET in found] == []
    (kept,) = json.loads(texts["podgroups.json"])["items"]
    (described,) = json.loads(kept["metadata"]["annotations"]["muster.dev/companions"])
    assert described["podSpec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
    assert json.loads(texts["pods.json"])["items"][0]["metadata"]["annotations"] == {
        "scheduling.k8s.io/group-name": "g"
    }


@pytest.mark.parametrize("note", [f'[{{"role": "{SECRET}", ', f'[{{"role": 1, "{SECRET}": 2}}]', "[" * 100_000])
def test_companions_that_can_not_be_read_stay_out_and_are_a_fault_there_too(tmp_path: Path, note: str) -> None:
    group = pod_group("g")
    group["metadata"]["annotations"] = {"muster.dev/companions": note}
    content = snapshot_zip(objects_of(tmp_path, group), None, TAKEN)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (kept,) = json.loads(archive.read("podgroups.json"))["items"]
    assert SECRET not in kept["metadata"]["annotations"]["muster.dev/companions"]
    assert pod_group_spec(msgspec.convert(kept, PodGroup)).problem.startswith("metadata.annotations[muster.dev/compan")


def test_companions_are_what_they_were_also_without_names_of_containers(tmp_path: Path) -> None:
    """So the operator describes them."""
    spec = {"containers": [{"resources": {"requests": {"cpu": "2"}}}], "nodeSelector": {"zone": "a"}}
    group = pod_group("g")
    group["metadata"]["annotations"] = {"muster.dev/companions": json.dumps([{"role": "s", "podSpec": spec}])}
    (before,), (after,) = before_and_after(tmp_path, PODGROUPS, group)
    assert pod_group_spec(after).companions == pod_group_spec(before).companions != ()


def before_and_after(tmp_path: Path, resource: Resource, *manifests: Any) -> tuple[list[Any], list[Any]]:
    """The objects of one kind as they are, and as a snapshot has them."""
    objects = objects_of(tmp_path, *manifests)
    path = tmp_path / "snapshot.zip"
    path.write_bytes(snapshot_zip(objects, None, TAKEN))
    found = read_manifests(read_sources([str(path)]).documents)
    return objects[resource], [each.object for each in found.objects[resource]]


STORED: dict[Resource, tuple[str, Any]] = {
    STORAGECLASSES: ("storageclass.kubernetes.io/is-default-class", storage_class_spec),
    PERSISTENTVOLUMECLAIMS: ("volume.kubernetes.io/selected-node", claim_spec),
    PERSISTENTVOLUMES: ("volume.beta.kubernetes.io/storage-class", volume_spec),
}


@pytest.mark.parametrize("resource", STORED, ids=lambda each: each.kind)
def test_storage_is_what_it_was(tmp_path: Path, resource: Resource) -> None:
    note, translate = STORED[resource]
    meta = {"name": "s", "annotations": {note: "true"}}
    manifest = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
    (before,), (after,) = before_and_after(tmp_path, resource, manifest)
    assert translate(after) == translate(before)
    meta["annotations"] = {}
    (plain,), _ = before_and_after(tmp_path, resource, manifest)
    assert translate(before) != translate(plain)


class Recorder(dict[str, str]):
    """Annotations, and which of them anybody asked for."""

    def __init__(self, content: dict[str, str], asked: set[str]) -> None:
        super().__init__(content)
        self.asked = asked

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> str:
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)


def test_every_annotation_that_the_scheduler_reads_is_kept(tmp_path: Path) -> None:
    """Whichever kind it stands on: one that is added later has to be kept, too."""
    manifests: list[Any] = [node("n"), queue("q"), priority_class("c", 1), *gang("g", 1), pod("r", "g", node="n")]
    manifests[-1]["status"] = {"phase": "Running"}
    present = {each["kind"] for each in manifests}
    for resource in TYPES:
        if resource.kind not in present:
            meta = {"name": "x"}
            manifests.append({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta})
    file = tmp_path / "manifests.yaml"
    file.write_bytes(text(*manifests))
    found = read_manifests(read_sources([str(file)]).documents)
    assert all(found.objects.values())
    asked: set[str] = set()
    for objects in found.objects.values():
        for index, each in enumerate(objects):
            plain = each.object.metadata
            recorded = msgspec.structs.replace(plain, annotations=Recorder(plain.annotations, asked))
            objects[index] = Found(each.place, msgspec.structs.replace(each.object, metadata=recorded))
    build_model(found, ("muster",))
    assert len(asked) > 15
    assert {key for key in asked if not is_kept(key)} == set()


def test_of_a_ray_job_only_its_state_is_kept() -> None:
    manifest = {
        "metadata": {"name": "j", "namespace": "default", "uid": "u"},
        "spec": {"entrypoint": f"python x.py --token {SECRET}", "runtimeEnvYAML": SECRET, "suspend": True},
        "status": {"jobDeploymentStatus": "Suspended"},
    }
    job = msgspec.json.decode(json.dumps(manifest), type=RayObject)
    with zipfile.ZipFile(io.BytesIO(snapshot_zip({RAYJOBS: [job]}, None, TAKEN))) as archive:
        document = json.loads(archive.read("rayjobs.json"))
    assert (document["apiVersion"], document["kind"]) == ("ray.io/v1", "RayJobList")
    (kept,) = document["items"]
    assert (kept["spec"], kept["status"]) == ({"suspend": True}, {"jobDeploymentStatus": "Suspended"})


def test_a_snapshot_says_what_it_is_and_two_of_the_same_moment_are_equal(tmp_path: Path) -> None:
    objects = objects_of(tmp_path, node("n1"))
    content = snapshot_zip(objects, None, TAKEN)
    assert content == snapshot_zip(objects, None, TAKEN)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert "muster simulate --now 2026-01-01T00:00:00Z" in archive.read("about.txt").decode()


@pytest.mark.parametrize("damage", [slice(0, 40), slice(0, -5)])
def test_half_a_snapshot_is_refused(tmp_path: Path, damage: slice) -> None:
    path = tmp_path / "snapshot.zip"
    path.write_bytes(snapshot_zip(objects_of(tmp_path, node("n1")), None, TAKEN)[damage])
    with pytest.raises(Exception, match=r"snapshot\.zip: not a readable zip"):
        read_sources([str(path)])


def test_what_no_scheduler_could_use_is_left_out_of_a_snapshots_simulation_and_named(tmp_path: Path) -> None:
    good, bad = gang("good", 1), pod("bad", "good", "-1")
    impossible = pod_group("wrong")
    impossible["spec"]["minResources"] = {"cpu": "many"}
    broken = queue("broken", capability={"cpu": "lots"})
    path = tmp_path / "snapshot.zip"
    path.write_bytes(snapshot_zip(objects_of(tmp_path, node("n1"), broken, impossible, [*good, bad]), None, TAKEN))
    model = build_model(read_manifests(read_sources([str(path)]).documents), ("muster",))
    (named,) = model.left_out
    assert "default/bad" in named
    simulation = Simulation(model, DEFAULT, Pace(TAKEN))
    document = cycle_document(simulation.cycle(), model.cache, simulation.inquiry())
    assert [binding["pod"] for binding in document["bindings"]] == ["default/good-w-0"]
    assert "spec.capability" in str(document["queues"]["broken"]["problem"])
    assert "spec.minResources[cpu]" in str(document["podGroups"]["default/wrong"])


def test_a_file_of_ones_own_has_no_such_leave(tmp_path: Path) -> None:
    file = tmp_path / "manifests.yaml"
    file.write_bytes(text(queue("broken", capability={"cpu": "lots"})))
    with pytest.raises(InputError, match=r"spec\.capability"):
        build_model(read_manifests(read_sources([str(file)]).documents), ("muster",))
