"""What is asked about: `podgroup/NAME`, `rayjob/NAME`, `raycluster/NAME` or `pod/NAME`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from muster.engine import wire_keys
from muster.kube.objects import ApiObject, ObjectMeta, Pod
from muster.ray import labels, names


class Kind(StrEnum):
    """What can be explained."""

    POD_GROUP = "podgroup"
    RAY_JOB = "rayjob"
    RAY_CLUSTER = "raycluster"
    POD = "pod"


_WORDS: Final = {
    **{kind.value: kind for kind in Kind},
    **{f"{kind.value}s": kind for kind in Kind},
    "pg": Kind.POD_GROUP,
    "po": Kind.POD,
}


class TargetError(ValueError):
    """What was asked about can't be understood, or is not there."""


@dataclass(frozen=True, slots=True)
class Target:
    """One object by kind, namespace and name."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class RayState(msgspec.Struct, frozen=True, rename="camel"):
    """Of a RayJob or RayCluster: its metadata, whether it is suspended, and its status."""

    metadata: ObjectMeta = ObjectMeta()
    suspended: bool = False
    status: Mapping[str, Any] = {}


def parse_target(text: str, namespace: str) -> Target:
    """`KIND/NAME`, with or without an API group behind the kind. Raises TargetError."""
    word, slash, name = text.partition("/")
    kind = _WORDS.get(word.lower().partition(".")[0])
    if not slash or not name or "/" in name or kind is None:
        raise TargetError(f"{text!r} is not KIND/NAME with KIND one of {', '.join(Kind)}")
    return Target(kind, namespace, name)


def group_of(target: Target, pods: Iterable[Pod], ray: RayState | None) -> str:
    """The key of the PodGroup that the target's pods belong to. Raises TargetError where there is no such pod."""
    if target.kind is Kind.POD_GROUP:
        return target.key
    if target.kind is Kind.POD:
        pod = next((each for each in pods if each.key == target.key), None)
        if pod is None:
            raise TargetError(f"{target} does not exist")
        return group_of_pod(pod)
    owner = target.name
    if target.kind is Kind.RAY_CLUSTER and ray is not None:
        owner = _ray_job_of(ray, target, pods) or owner
    return f"{target.namespace}/{names.pod_group(owner)}"


def _ray_job_of(ray: RayState, target: Target, pods: Iterable[Pod]) -> str | None:
    """The RayJob whose gang a cluster's pods are in: it controls the cluster, or has left it behind with its pods."""
    controller = next((each for each in ray.metadata.owner_references if each.controller), None)
    if controller is not None and controller.kind == "RayJob":
        return controller.name
    made_by_job = ray.metadata.labels.get(labels.ORIGINATED_FROM_KIND) == "RayJob"
    job = ray.metadata.labels.get(labels.ORIGINATED_FROM_NAME) if made_by_job else None
    group = f"{target.namespace}/{names.pod_group(job)}" if job else None
    own = (pod for pod in pods if pod.metadata.labels.get(labels.CLUSTER) == target.name)
    return job if any(group_of_pod(pod) == group for pod in own) else None


def group_of_pod(pod: Pod) -> str:
    """The PodGroup that a pod names, else the one that it is given."""
    named = pod.metadata.annotations.get(wire_keys.GROUP_NAME)
    return f"{pod.metadata.namespace}/{named or f'podgroup-{pod.metadata.uid}'}"


def state_of(found: ApiObject) -> RayState:
    """A RayJob or RayCluster as it is read here."""
    spec, status = getattr(found, "spec", None), getattr(found, "status", None)
    suspended = bool(getattr(spec, "suspend", False))
    return RayState(found.metadata, suspended, status if isinstance(status, Mapping) else {})
