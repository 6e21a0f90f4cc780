"""Amounts that would keep the API server busy for hours (`quantities.is_costly`), wherever it reads a quantity.

Reading is enough, so these can't be left to its dry run as other mistakes are. The types of what is looked through may
be wrong: then the server finds nothing to read there either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from muster.api.errors import FieldProblem
from muster.quantities import is_costly
from muster.ray.validation.view import Problems

_DIVISOR: Final = "resourceFieldRef.divisor"
_RESOURCES: Final = ("resources.requests{}", "resources.limits{}")
_CONTAINER: Final = (*_RESOURCES, f"env[].valueFrom.{_DIVISOR}")
_VOLUME: Final = (
    "emptyDir.sizeLimit",
    f"downwardAPI.items[].{_DIVISOR}",
    f"projected.sources[].downwardAPI.items[].{_DIVISOR}",
    *(f"ephemeral.volumeClaimTemplate.spec.{place}" for place in _RESOURCES),
)
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_TEMPLATE: Final = (
    "spec.overhead{}",
    *(f"spec.{place}" for place in _RESOURCES),
    *(f"spec.{kind}[].{place}" for kind in _CONTAINERS for place in _CONTAINER),
    *(f"spec.volumes[].{place}" for place in _VOLUME),
)


def in_template(template: Mapping[str, Any], path: str) -> Problems:
    """Those in a pod template that stands at `path`."""
    return _costly(template, _TEMPLATE_STEPS, path)


def in_container(container: Mapping[str, Any], path: str) -> Problems:
    """Those in a container."""
    return _costly(container, _CONTAINER_STEPS, path)


def in_env_source(source: Mapping[str, Any], path: str) -> Problems:
    """Those in the `valueFrom` of a variable."""
    return _costly(source, _SOURCE_STEPS, path)


def costly_amount(amount: object, path: str) -> Problems:
    """The problem with this amount, if it is such a one."""
    if not is_costly(amount):
        return
    text = str(amount)
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    yield FieldProblem(
        path,
        f'"{shown}" is too much for the API server to read: a quantity may have 300 characters, and an exponent of at '
        "most 400; write a number with an optional unit, such as 2, 500m or 1.5Gi",
    )


_Steps = tuple[str, ...]


def _steps(places: Sequence[str]) -> tuple[_Steps, ...]:
    """Each place (`env[].name`, `requests{}`) as the steps to it; `[]` is each entry of a list, `{}` of a mapping."""
    return tuple(tuple(place.replace("[]", ".[]").replace("{}", ".{}").split(".")) for place in places)


_TEMPLATE_STEPS: Final = _steps(_TEMPLATE)
_CONTAINER_STEPS: Final = _steps(_CONTAINER)
_SOURCE_STEPS: Final = _steps([_DIVISOR])


def _costly(value: object, places: Sequence[_Steps], path: str) -> Problems:
    for steps in places:
        for where, amount in _amounts(value, steps, path):
            yield from costly_amount(amount, where)


def _amounts(value: object, steps: _Steps, path: str) -> Iterator[tuple[str, object]]:
    """What is found by these steps, and where."""
    if not steps:
        yield path, value
        return
    step, rest = steps[0], steps[1:]
    if step == "[]":
        for index, entry in enumerate(value if isinstance(value, list) else ()):
            yield from _amounts(entry, rest, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        if step == "{}":
            for key, entry in value.items():
                yield from _amounts(entry, rest, f"{path}[{key}]")
        elif step in value:
            yield from _amounts(value[step], rest, f"{path}.{step}" if path else step)
