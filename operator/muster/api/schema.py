"""What a CustomResourceDefinition says beyond the types of the fields.

Defaults, ranges, CEL rules, printer columns and names stand next to the models as plain data: `Schema` inside an
`Annotated` type for one field, `rules` on a model for an object, `definition` on the model of a whole resource.
`crds.py` turns them into YAML. Nothing here changes how an object is parsed: a default is filled in by the API server,
so that an absent field stays absent in an object that it did not touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule of `x-kubernetes-validations`. The API server refuses the object with `message`."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True, eq=False)  # by identity, so that it may hold dicts inside an Annotated type
class Schema:
    """Additions to the OpenAPI schema of one field. None (or UNSET for the default) adds nothing."""

    default: Any = UNSET
    enum: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    pattern: str | None = None
    format: str | None = None
    list_type: str | None = None
    list_map_keys: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    int_or_string: bool = False
    properties: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; those with a priority above 0 show with `-o wide` only."""

    name: str
    type: str
    json_path: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Definition:
    """The names and habits of one custom resource."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    columns: tuple[Column, ...]
    namespaced: bool = True
    status_subresource: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def api_version(self) -> str:
        """`group/version`, as objects write it."""
        return f"{self.group}/{self.version}"
