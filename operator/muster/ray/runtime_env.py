"""`runtimeEnvYAML`: the user's text, read into the JSON object that Ray takes, or told what is wrong with it.

The text is anybody's: it may be no YAML, hold tags that PyYAML trips over, stand for gigabytes by a few aliases, or say
what JSON can't. Each of these is one RuntimeEnvError. A message never quotes the text, which may hold secrets.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

import yaml

_LONGEST: Final = 100_000
"""Characters, as written and with aliases written out. It reaches the submitter in a variable of at most 128 KiB."""


class RuntimeEnvError(ValueError):
    """The text is no runtime environment; the message goes after the field's name."""


def read_runtime_env(text: str | None) -> dict[str, Any]:
    """The runtime environment, empty when there is none. Raises RuntimeEnvError."""
    environment: dict[str, Any] = json.loads(_to_json(text or ""))
    return environment


@lru_cache(maxsize=256)  # a RayJob is looked at many times, and a long text takes PyYAML most of a second
def _to_json(text: str) -> str:
    if len(text) > _LONGEST:
        raise RuntimeEnvError(f"has more than {_LONGEST} characters; shorten it")
    document = _load(text)
    if document is None:
        return "{}"
    if not isinstance(document, dict):
        raise RuntimeEnvError(f"must be a YAML mapping such as `pip: [requests]`, not a {_yaml_kind(document)}")
    if _characters(document, _LONGEST) > _LONGEST:
        raise RuntimeEnvError(f"has more than {_LONGEST} characters when its aliases are written out; shorten it")
    try:
        # As httpx encodes the body of a request. On the way all keys become text.
        encoded = json.dumps(document, allow_nan=False, ensure_ascii=False)
        encoded.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RuntimeEnvError(f"can't be sent to Ray as JSON: {error}") from None
    return encoded


def _load(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else None
        told = ", ".join(filter(None, (error.context, error.problem, where)))
        raise RuntimeEnvError(f"is not YAML: {told}") from None
    except yaml.YAMLError as error:
        raise RuntimeEnvError(f"is not YAML: {' '.join(str(error).split())}") from None
    except (ValueError, RecursionError, IndexError, KeyError, AttributeError, TypeError) as error:
        # What PyYAML does with a value that its explicit tag does not fit, such as `!!bool maybe`.
        raise RuntimeEnvError(f"is not YAML: a value can't be read ({type(error).__name__})") from None


def _characters(document: object, limit: int) -> int:
    """About how long the document is in full, counted up to `limit`: a few aliases can stand for gigabytes."""
    total, rest = 0, [document]
    while rest and total <= limit:
        match rest.pop():
            case dict() as mapping:
                rest += [*mapping.keys(), *mapping.values()]
                total += 1
            case list() | tuple() | set() as items:
                rest += items
                total += 1
            case scalar:
                total += len(str(scalar))
    return total


def _yaml_kind(document: object) -> str:
    kinds = {str: "string", list: "list", bool: "boolean", int: "number", float: "number"}
    return kinds.get(type(document), type(document).__name__)
