"""What `muster explain` is asked about, and which PodGroup that leads to."""

from __future__ import annotations

import pytest

from muster.explain.target import Kind, RayState, Target, TargetError, group_of, parse_target
from muster.kube.objects import ObjectMeta, OwnerReference, Pod


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("podgroup/a", Kind.POD_GROUP),
        ("pg/a", Kind.POD_GROUP),
        ("podgroups.scheduling.volcano.sh/a", Kind.POD_GROUP),
        ("RayJob/a", Kind.RAY_JOB),
        ("rayclusters/a", Kind.RAY_CLUSTER),
        ("po/a", Kind.POD),
    ],
)
def test_kinds_are_written_as_for_kubectl(text: str, kind: Kind) -> None:
    assert parse_target(text, "ns") == Target(kind, "ns", "a")


@pytest.mark.parametrize("text", ["", "a", "rayjob/", "/a", "queue/a", "pod/a/b", "podgroup"])
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(TargetError, match="is not KIND/NAME"):
        parse_target(text, "ns")


def pod(name: str, **annotations: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=f"u-{name}", annotations=annotations))


FROM_JOB = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "job"}


BY_JOB = OwnerReference(api_version="ray.io/v1", kind="RayJob", name="job", controller=True)


@pytest.mark.parametrize(
    ("target", "ray", "group"),
    [
        ("podgroup/g", None, "ns/g"),
        ("pod/member", None, "ns/mine"),
        ("pod/loner", None, "ns/podgroup-u-loner"),
        ("rayjob/job", RayState(), "ns/ray-job-pg"),
        ("raycluster/c", RayState(), "ns/ray-c-pg"),
        ("raycluster/c", RayState(ObjectMeta(owner_references=[BY_JOB])), "ns/ray-job-pg"),
        ("raycluster/c", RayState(ObjectMeta(labels=FROM_JOB)), "ns/ray-c-pg"),
        ("raycluster/left", RayState(ObjectMeta(labels=FROM_JOB)), "ns/ray-job-pg"),
    ],
)
def test_every_target_leads_to_a_pod_group(target: str, ray: RayState | None, group: str) -> None:
    pods = [pod("member", **{"scheduling.k8s.io/group-name": "mine"}), pod("loner")]
    left = ObjectMeta(
        name="head",
        namespace="ns",
        labels={"ray.io/cluster": "left"},
        annotations={"scheduling.k8s.io/group-name": "ray-job-pg"},
    )
    pods.append(Pod(metadata=left))
    assert group_of(parse_target(target, "ns"), pods, ray) == group


def test_a_pod_that_is_not_there_is_said_to_be_missing() -> None:
    with pytest.raises(TargetError, match="pod ns/x does not exist"):
        group_of(parse_target("pod/x", "ns"), [], None)
