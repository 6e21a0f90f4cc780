"""What is read from files, and what is refused with its place."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.kube.objects import Pod
from muster.kube.resource import PODS
from muster.simulator.input_error import InputError
from muster.simulator.manifests import Manifests, read_manifests
from muster.simulator.model import build_model
from muster.simulator.sources import read_sources
from tests.simulator.manifests import node, pod, pod_group, priority_class, queue, text

NODE = text(node("n1")).decode()


def read(*files: Path) -> Manifests:
    return read_manifests(read_sources([str(each) for each in files]).documents)


def pods(found: Manifests) -> list[Pod]:
    return [each.object for each in found.of(PODS, Pod)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cluster.yaml"


@pytest.mark.parametrize(
    "content",
    [
        text(pod("a"), pod("b")),
        b"---\n---\n" + text(pod("a")) + b"---\n# nothing here\n---\n" + text(pod("b")),
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [pod("a"), pod("b")]}).encode(),
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod("a"), pod("b")]}).encode(),
        json.dumps(
            {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": n}} for n in "ab"]}
        ).encode(),
        b"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}, "
        b"{apiVersion: v1, kind: Pod, metadata: {name: b}}]}",
        text({"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "List", "items": [pod("a")]}]})
        + b"---\n"
        + text(pod("b")),
    ],
    ids=["documents", "empty documents", "List", "JSON", "PodList", "flow style", "nested Lists"],
)
def test_all_forms_of_manifests_give_the_same_objects(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert [each.key for each in pods(read(file))] == ["default/a", "default/b"]


def test_a_zip_is_read_member_by_member_with_its_configuration(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pods.json", json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [pod("a")]}))
        archive.writestr("more/nodes.yaml", NODE)
        archive.writestr("scheduler.yaml", "actions: allocate")
        archive.writestr("README.txt", "not: [yaml")
    sources = read_sources([str(path)])
    assert sources.configuration == (f"{path}:scheduler.yaml", b"actions: allocate")
    assert [str(each.place) for each in sources.documents] == [
        f"{path}:more/nodes.yaml, document 1",
        f"{path}:pods.json, document 1",
    ]


def test_text_of_kubernetes_is_not_made_into_yaml_types(file: Path) -> None:
    file.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  creationTimestamp: 2026-01-01T00:00:00Z\n"
        "  annotations: {at: 10:30, eq: =, 8080: port}\n  labels:\nspec:\n  containers: []\n  affinity: null\n"
    )
    (found,) = pods(read(file))
    assert found.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    assert found.metadata.annotations == {"at": "10:30", "eq": "=", "8080": "port"}
    assert found.metadata.labels == {}


def test_anchors_and_merge_keys_are_understood(file: Path) -> None:
    file.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
        "  - &c {name: one, resources: {requests: &r {cpu: 1, memory: 1Gi}}}\n"
        "  - {<<: *c, name: two}\n"
        "  - {name: three, resources: {requests: {<<: [{cpu: 2}, *r]}}}\n"
    )
    (found,) = pods(read(file))
    assert [each.name for each in found.spec.containers] == ["one", "two", "three"]
    assert [each.resources.requests for each in found.spec.containers] == [
        {"cpu": 1, "memory": "1Gi"},
        {"cpu": 1, "memory": "1Gi"},
        {"cpu": 2, "memory": "1Gi"},
    ]


def test_objects_of_other_kinds_and_groups_are_counted(file: Path) -> None:
    others = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}},
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}},
        {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "no pod of ours"}},
    ]
    file.write_bytes(text(others, pod("a")))
    assert read(file).passed_over == {"ConfigMap": 2, "Job": 1, "Pod": 1}


def test_a_missing_namespace_is_default_and_a_missing_uid_the_namespace_and_name(file: Path) -> None:
    file.write_bytes(text({**pod("a"), "metadata": {"name": "a"}}, node("n1")))
    (found,) = pods(read(file))
    assert (found.metadata.namespace, found.metadata.uid) == ("default", "default/a")


def broken(**changes: Any) -> bytes:
    return NODE.encode() + b"---\n" + text({**pod("p"), **changes})


def requesting(name: str, quantity: Any) -> bytes:
    containers = [{"name": "c", "resources": {"requests": {name: quantity}}}]
    return NODE.encode() + b"---\n" + text(pod("p", containers=containers))


BAD = {
    "no YAML": (b"kind: Pod\n  metadata: [\n", ["document 1", "not YAML", "line 2"]),
    "no YAML in the second document": (NODE.encode() + b"---\na: b: c\n", ["document 2", "not YAML"]),
    "no UTF-8": (b"kind: \xff\xfe", ["not YAML"]),
    "half a JSON": (b'{"kind": "Pod", ', ["not YAML"]),
    "empty": (b"", ["holds no document"]),
    "only comments": (b"# nothing\n---\n", ["holds no document"]),
    "a list": (b"- a\n- b\n", ["document 1", "must be an object"]),
    "a word": (NODE.encode() + b"---\nhello\n", ["document 2", "must be an object"]),
    "an unknown tag": (b"a: !python/object:os.system {}\n", ["document 1", "not YAML"]),
    "a key twice": (b"kind: Pod\nkind: Node\n", ["document 1", "'kind' is there twice", "line 2"]),
    "nested too deep": (b"[" * 100_000, ["document 1", "nesting depth"]),
    "no kind": (b"metadata: {name: x}\n", ["document 1", "kind", "is missing", "x"]),
    "no kind but a version": (b"apiVersion: v1\nmetadata: {name: x}\n", ["document 1: kind: is missing", "x"]),
    "no version": (b"kind: Pod\nmetadata: {name: x}\n", ["document 1: apiVersion: is missing", "x"]),
    "a kind that is a number": (b"apiVersion: v1\nkind: 3\n", ["kind", "must be text"]),
    "items that are none": (b"apiVersion: v1\nkind: List\nitems: {a: b}\n", ["items", "must be a list"]),
    "an item without a kind": (b"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1}]\n", ["item 1", "kind"]),
    "an item that is a word": (b"apiVersion: v1\nkind: List\nitems: [x]\n", ["item 1", "must be an object"]),
    "no name": (broken(metadata={"namespace": "default"}), ["document 2", "metadata.name", "is missing"]),
    "a wrong type": (broken(spec={"containers": {"name": "c"}}), ["document 2", "spec.containers", "Pod default/p"]),
    "a quantity that is none": (requesting("cpu", "many"), ["document 2", "containers[0].resources.requests[cpu]"]),
    "a negative request": (requesting("memory", "-1Gi"), ["requests[memory]", "negative"]),
    "a skew that is none": (
        text(pod("p", topologySpreadConstraints=[{"topologyKey": "zone", "maxSkew": 0}])),
        ["spec.topologySpreadConstraints[0].maxSkew", "default/p"],
    ),
    "a taint of no effect": (
        text(node("n1", taints=[{"key": "k", "effect": "Never"}])),
        ["spec.taints[0].effect", "'Never'"],
    ),
    "a negative node": (text(node("n1", cpu=-4)), ["status.allocatable[cpu]", "negative"]),
    "a creation time that is none": (
        text(pod("p", metadata={"creationTimestamp": "yesterday"})),
        ["metadata.creationTimestamp", "yesterday"],
    ),
    "a deletion time that is none": (
        text(pod("p", metadata={"deletionTimestamp": "soon"})),
        ["metadata.deletionTimestamp", "soon"],
    ),
    "a start time that is none": (text(pod("p", status={"startTime": "then"})), ["status.startTime", "then"]),
    "a run time that is none": (text(pod("p", runtime="ninety")), ["muster.dev/expected-runtime", "ninety"]),
    "members in words": (text(pod_group("g", minMember="three")), ["spec.minMember", "PodGroup default/g"]),
    "minResources that are none": (text(pod_group("g", minResources={"cpu": "x"})), ["spec.minResources[cpu]"]),
    "a capability that is none": (text(queue("q", capability={"cpu": "x"})), ["spec.capability[cpu]"]),
    "a guarantee that is none": (
        text(queue("q", guarantee={"resource": {"cpu": "1x"}})),
        ["spec.guarantee.resource[cpu]"],
    ),
    "a priority in words": (text({**priority_class("c", 1), "value": "high"}), ["value", "PriorityClass c"]),
    "the same object twice": (text(pod("p"), pod("p")), ["document 2", "metadata.name", "document 1"]),
    "the same uid twice": (
        text(pod("p", metadata={"uid": "u"}), pod("q", metadata={"uid": "u"})),
        ["document 2", "metadata.uid", "document 1"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_file_document_and_field(file: Path, case: str) -> None:
    content, words = BAD[case]
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        build_model(read(file), ("muster",))
    message = str(caught.value)
    assert message.startswith(str(file))
    assert [word for word in words if word not in message] == [], message


def faulty_items() -> dict[str, tuple[dict[str, Any], tuple[str, str]]]:
    """What one item of a List has wrong, and how what is said of it begins, behind the file's name, and ends."""
    second = ", document 1, item 2"
    request = [{"name": "c", "resources": {"requests": {"cpu": "many"}}}]
    return {
        "a pod's quantity": (
            pod("p", containers=request),
            (f"{second}: spec.containers[0].resources.requests[cpu]: ", "(Pod default/p)"),
        ),
        "a pod's type": (pod("p", containers={"name": "c"}), (f"{second}: spec.containers: ", "(Pod default/p)")),
        "a pod's time": (
            pod("p", metadata={"creationTimestamp": "soon"}),
            (f"{second}: metadata.creationTimestamp: ", "(Pod default/p)"),
        ),
        "a pod's run time": (
            pod("p", runtime="ninety"),
            (f"{second}: metadata.annotations[muster.dev/expected-runtime]: ", "(Pod default/p)"),
        ),
        "a queue's cap": (queue("q", capability={"cpu": "x"}), (f"{second}: spec.capability[cpu]: ", "(Queue q)")),
        "a queue without a name": (
            {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {}},
            (f"{second}: metadata.name: ", "(Queue)"),
        ),
        "an object without a kind": ({"metadata": {"name": "x"}}, (f"{second}: kind: ", "(x)")),
        "the first one again": (node("n1"), (f"{second}: metadata.name: ", "(Node n1)")),
    }


@pytest.mark.parametrize("case", faulty_items())
@pytest.mark.parametrize("kind", ["List", "YAML"])
def test_an_item_that_can_not_be_used_is_named_by_kind_and_name(file: Path, case: str, kind: str) -> None:
    item, (said, about) = faulty_items()[case]
    items = [node("n1"), item]
    if kind == "List":
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    else:
        file.write_bytes(text(*items))
        said = said.replace("document 1, item 2", "document 2")
    with pytest.raises(InputError) as caught:
        build_model(read(file), ("muster",))
    assert str(caught.value).startswith(f"{file}{said}"), str(caught.value)
    assert str(caught.value).endswith(about), str(caught.value)


def test_what_a_snapshot_has_for_explain_is_not_foreign(tmp_path: Path) -> None:
    job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "j"}}
    path = tmp_path / "snapshot.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rayjobs.json", json.dumps({"apiVersion": "ray.io/v1", "kind": "RayJobList", "items": [job]}))
        archive.writestr("more.json", json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}))
    assert read(path).passed_over == {"Service": 1}


def test_a_ray_job_of_somebodys_own_files_is_passed_over_and_said_so(file: Path) -> None:
    file.write_bytes(text({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "j"}}))
    assert read(file).passed_over == {"RayJob": 1}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.yaml: No such file"):
        read(tmp_path / "missing.yaml")


def test_a_directory_is_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        read(tmp_path)


def test_a_json_file_is_judged_as_json(tmp_path: Path) -> None:
    file = tmp_path / "pods.json"
    file.write_text('{"kind": "Pod", }')
    with pytest.raises(InputError, match="document 1: not JSON"):
        read(file)


def test_a_zip_that_is_broken_is_named(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("nodes.yaml", NODE)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"snapshot\.zip: not a readable zip"):
        read(path)
