"""Pods that are alike hold in common what is equal in them: labels, owner, containers, tolerations.

Decoded one by one, the pods of one Deployment hold as many copies of all that. Here a pod gets the parts of one that is
known where they are equal, by comparison and never by assumption; so nothing may change a decoded object, as anywhere.
"""

from __future__ import annotations

import sys
from typing import Final, TypeVar

import msgspec

from muster.kube.object_base import Part, controller_of
from muster.kube.pod_objects import Pod, PodSpec

P = TypeVar("P", bound=Part)

_CONTROLLERS: Final = 1000
"""Of how many a pod is remembered: some megabytes at most, if all of them are gone."""


class SharedParts:
    """Gives each pod the equal parts of its own state before, else of a pod of its controller, else of the one before.

    What it returns is equal to what it is given, and is to be kept in its place.
    """

    def __init__(self, controllers: int = _CONTROLLERS) -> None:
        self._controllers = controllers
        self._by_controller: dict[str, Pod] = {}
        """The latest pod of each controller, that of the latest at the end."""
        self._latest = Pod()

    def __call__(self, pod: Pod, known: Pod | None) -> Pod:
        """The same pod; `known` is what is known of it until now."""
        owner = controller_of(pod.metadata)
        uid = owner.uid if owner is not None else ""
        giver = known or self._by_controller.pop(uid, self._latest)
        pod = self._latest = Pod(
            metadata=with_parts_of(giver.metadata, pod.metadata),
            spec=_spec_with_parts_of(giver.spec, pod.spec),
            status=with_parts_of(giver.status, pod.status),
        )
        if uid:
            self._by_controller[uid] = pod
            if len(self._by_controller) > self._controllers:
                del self._by_controller[next(iter(self._by_controller))]
        return pod


def with_parts_of(giver: P, part: P) -> P:
    """The same part, each field of it the giver's own where it is equal."""
    if giver == part:
        return giver
    fields = zip(part.__struct_fields__, msgspec.structs.astuple(part), msgspec.structs.astuple(giver), strict=True)
    equal = {name: given for name, own, given in fields if own is not given and own == given}
    return msgspec.structs.replace(part, **equal)


def _spec_with_parts_of(giver: PodSpec, spec: PodSpec) -> PodSpec:
    # Most pods are like another one but for their node: that takes one comparison.
    node = spec.node_name if spec.node_name is None else sys.intern(spec.node_name)
    alike: PodSpec = giver if giver.node_name == node else msgspec.structs.replace(giver, node_name=node)
    return with_parts_of(alike, spec)
