"""The types that fields of custom resources are made of."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from muster.api.schema import Schema

INT32_MAX = 2_147_483_647


def _quantity_type(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PydanticCustomError("quantity_type", "must be a quantity")
    return value


_INT32_MIN = -INT32_MAX - 1

# The API server lets any whole number pass for an int32: only bounds keep a number out that nobody could read again.
Int32 = Annotated[
    int, Field(ge=_INT32_MIN, le=INT32_MAX), Schema(format="int32", minimum=_INT32_MIN, maximum=INT32_MAX)
]
Count = Annotated[int, Field(ge=_INT32_MIN, le=INT32_MAX), Schema(format="int32", minimum=0, maximum=INT32_MAX)]

Quantity = Annotated[int | float | str, BeforeValidator(_quantity_type), Schema(int_or_string=True)]
"""A Kubernetes quantity as written: 1, 0.5, "500m", "2Gi". Its text is judged by `ray.validation`, not by parsing."""

ResourceList = dict[str, Quantity]
"""Resource name -> quantity."""

Timestamp = Annotated[str, Schema(format="date-time")]
"""RFC 3339, as the API server writes it."""

Object = dict[str, Any]
"""A Kubernetes object of another API group (a Service, a selector, …), kept as it is."""

_POD_SPEC_SCHEMA = {
    "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "spec": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "containers": {
                "type": "array",
                "items": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"name": {"type": "string"}},
                },
            }
        },
    },
}

PodTemplate = Annotated[dict[str, Any], Schema(properties=_POD_SPEC_SCHEMA)]
"""A PodTemplateSpec, kept as it is: the API server judges it when the pod is made."""
