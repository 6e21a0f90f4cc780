"""The base of every model: strict about types, lenient about fields.

A value of the wrong type is refused with its path; a field that this version does not know is kept and written back.
Absent, null, zero and empty stay four things: `model_fields_set` has what was written, `dump()` gives back just that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from muster.api.errors import MalformedResource
from muster.api.problems import field_problems
from muster.api.schema import Definition, Rule


class Model(BaseModel):
    """An object of a custom resource. Attributes are snake_case, the wire is camelCase."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="allow",
        protected_namespaces=(),
        strict=True,
        validate_by_alias=True,
        validate_by_name=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()
    meanings: ClassVar[Mapping[str, str]] = {}
    """What fields mean, for `kubectl explain`; an object says it itself."""

    @classmethod
    def parse(cls, obj: Mapping[str, Any]) -> Self:
        """Read an object as the API server gives it. Raises MalformedResource, which names each field at fault."""
        try:
            return cls.model_validate(obj, by_alias=True, by_name=False)
        except ValidationError as error:
            raise MalformedResource(cls.__name__, field_problems(cls, error)) from None

    def dump(self) -> dict[str, Any]:
        """The object as JSON-able data: unknown fields included, fields that were never set left out."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Resource(Model):
    """A whole custom resource. `definition` holds what its CRD says about names, columns and subresources."""

    definition: ClassVar[Definition]

    api_version: str | None = None
    kind: str | None = None
