"""The pods that a gang will need later, as an annotation on its PodGroup describes them."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.engine.amounts import TranslationError, resources
from muster.engine.pod_constraints import pod_constraints
from muster.engine.pod_requests import pod_requests
from muster.engine.pod_validation import check_placement
from muster.kube import objects
from muster.scheduler.specs import Companion


class DescribedCompanion(msgspec.Struct, frozen=True, rename="camel"):
    """A role, and as much of its pod's spec as is read."""

    role: str
    pod_spec: objects.PodSpec


class _Described(msgspec.Struct, rename="camel"):
    role: str
    pod_spec: dict[str, Any]


def described_companions(text: str) -> list[DescribedCompanion]:
    """Read the annotation. Raises ValueError for what is no such list."""
    try:
        found = msgspec.json.decode(text, type=list[_Described])
        return [
            DescribedCompanion(each.role, msgspec.convert(_with_container_names(each.pod_spec), type=objects.PodSpec))
            for each in found
        ]
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def companions_in(text: str, path: str, namespace: str) -> list[Companion]:
    """Translate the annotation, which stands at `path` of a PodGroup in the namespace. Raises TranslationError."""
    try:
        found = described_companions(text)
    except ValueError as error:
        raise TranslationError(path, str(error)) from error
    return [
        _companion(each.role, each.pod_spec, f"{path}[{index}].podSpec", namespace) for index, each in enumerate(found)
    ]


def _companion(role: str, spec: objects.PodSpec, path: str, namespace: str) -> Companion:
    check_placement(spec, path)  # no API server has seen it
    request = resources(pod_requests(spec, path))
    return Companion(role, request, request, pod_constraints(spec, path, namespace=namespace))


def _with_container_names(spec: dict[str, Any]) -> dict[str, Any]:
    """Containers in a companion's spec need no names; the type that reads them asks for one."""
    named = dict(spec)
    for field in ("containers", "initContainers"):
        found = spec.get(field)
        if isinstance(found, list):
            named[field] = [{"name": "", **each} if isinstance(each, dict) else each for each in found]
    return named
