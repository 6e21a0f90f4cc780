"""pydantic's errors in the words of someone who edits a manifest."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from muster.api.errors import FieldProblem

_PLAIN_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def field_problems(model: type[BaseModel], error: ValidationError) -> list[FieldProblem]:
    """Each error of `error` as a path and an instruction, in the order of the fields."""
    return [
        FieldProblem(field_path(model, details["loc"]), _message(details))
        for details in error.errors(include_url=False, include_context=True)
    ]


def field_path(model: type[BaseModel], location: Sequence[int | str]) -> str:
    """The location as Kubernetes writes it: fields by dots, list items and map keys in brackets."""
    path = ""
    current: Any = model
    for step in location:
        if step == "[key]":
            break
        in_map = get_origin(current) is dict
        if isinstance(step, int) or in_map or not _PLAIN_FIELD.fullmatch(step):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
        current = _step_into(current, step)
    return path or "(the object itself)"


def _step_into(current: Any, step: int | str) -> Any:
    if isinstance(current, type) and issubclass(current, BaseModel):
        for name, field in current.model_fields.items():
            if step in (field.alias, name):
                return _bare(field.annotation)
        return None
    arguments = get_args(current)
    return _bare(arguments[-1]) if arguments else None


def _bare(annotation: Any) -> Any:
    """The type without Annotated and without None."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _bare(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        return _bare(kinds[0]) if len(kinds) == 1 else None
    return annotation


def _message(details: ErrorDetails) -> str:
    teller = _TELLERS.get(details["type"])
    return teller(details) if teller else details["msg"]


def _written(value: object) -> str:
    """How a YAML author would call the value."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int():
            return f"the integer {value}"
        case float():
            return f"the number {value}"
        case str():
            return f"the string {_short(value)}"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def _short(text: str) -> str:
    return f'"{text}"' if len(text) <= 40 else f'"{text[:37]}..."'


def _integer(details: ErrorDetails) -> str:
    value = details["input"]
    hint = ""
    if isinstance(value, str) and re.fullmatch(r"[+-]?\d{1,18}", value.strip()):
        hint = f"; write {int(value)} without quotes"
    return f"must be an integer, not {_written(value)}{hint}"


def _string(details: ErrorDetails) -> str:
    value = details["input"]
    hint = ""
    if isinstance(value, bool | int | float):
        literal = str(value).lower() if isinstance(value, bool) else str(value)
        hint = f'; put it in quotes: "{literal}"'
    return f"must be a string, not {_written(value)}{hint}"


def _boolean(details: ErrorDetails) -> str:
    value = details["input"]
    hint = "; write it without quotes" if isinstance(value, str) and value.lower() in ("true", "false") else ""
    return f"must be true or false, not {_written(value)}{hint}"


def _expects(what: str) -> Callable[[ErrorDetails], str]:
    return lambda details: f"must be {what}, not {_written(details['input'])}"


def _bound(details: ErrorDetails) -> str:
    limits = details["ctx"]
    if "le" in limits:
        return f"must be at most {limits['le']}, not {details['input']}"
    return f"must be at least {limits['ge']}, not {details['input']}"


_TELLERS: dict[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda _: "is required; add it",
    "int_type": _integer,
    "int_from_float": _integer,
    "string_type": _string,
    "bool_type": _boolean,
    "float_type": _expects("a number"),
    "dict_type": _expects("a mapping"),
    "list_type": _expects("a list"),
    "model_type": _expects("a mapping"),
    "model_attributes_type": _expects("a mapping"),
    "quantity_type": _expects('a quantity such as 1, 500m or "2Gi"'),
    "greater_than_equal": _bound,
    "less_than_equal": _bound,
}
