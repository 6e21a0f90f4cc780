"""`runtimeEnvYAML`: the user's text, read into the JSON object that Ray takes, or told what is wrong with it.

The text is anybody's: it may be no YAML, stand for gigabytes by a few aliases, be nested without end, or say what JSON
can't. Each of these is one RuntimeEnvError, soon: the operator does nothing else while it reads. A message never quotes
the text, which may hold secrets.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from yaml.events import AliasEvent

from muster.yaml_documents import Values, YamlError, yaml_documents

_LONGEST: Final = 100_000
"""Characters, as written and with aliases written out. It reaches the submitter in a variable of at most 128 KiB."""
_MOST_VALUES: Final = 10_000
"""Reading so many takes a tenth of a second."""
_DEEPEST: Final = 100
"""Levels. PyYAML without libyaml takes a time that grows with their square."""


class RuntimeEnvError(ValueError):
    """The text is no runtime environment; the message goes after the field's name."""


def read_runtime_env(text: str | None) -> dict[str, Any]:
    """The runtime environment, empty when there is none. Raises RuntimeEnvError."""
    answer = _to_json(text or "")
    if isinstance(answer, _Refused):
        raise RuntimeEnvError(answer)
    environment: dict[str, Any] = json.loads(answer)
    return environment


class _Refused(str):
    """Why a text is refused."""

    __slots__ = ()


class _TooMuchError(Exception):
    """A bound was reached, here and now."""


@lru_cache(maxsize=256)  # a RayJob is looked at many times, one whose text is refused as well
def _to_json(text: str) -> str | _Refused:
    try:
        return _encoded(_load(text))
    except RuntimeEnvError as error:
        return _Refused(error)


def _encoded(document: Any) -> str:
    if not isinstance(document, dict):
        raise RuntimeEnvError(f"must be a YAML mapping such as `pip: [requests]`, not a {_yaml_kind(document)}")
    try:
        # As httpx encodes the body of a request.
        encoded = json.dumps(document, allow_nan=False, ensure_ascii=False)
        encoded.encode()
    except ValueError as error:
        raise RuntimeEnvError(f"can't be sent to Ray as JSON: {error}") from None
    return encoded


def _load(text: str) -> Any:
    if len(text) > _LONGEST:
        raise RuntimeEnvError(f"has more than {_LONGEST} characters; shorten it")
    try:
        documents = [document for _, document in yaml_documents(text.encode(), _BoundedValues)]
    except _TooMuchError as error:
        raise RuntimeEnvError(str(error)) from None
    except UnicodeError:
        raise RuntimeEnvError("is not YAML: not UTF-8") from None
    except YamlError as error:
        raise RuntimeEnvError(f"is {error.discreet}") from None
    if len(documents) > 1:
        raise RuntimeEnvError("has more than one YAML document; write one mapping, without `---`")
    return documents[0] if documents else {}


class _BoundedValues(Values):
    """Stops as soon as the text is too much. Of a repeated key the last one counts, as with KubeRay."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        super().__init__(next_event)
        self._characters = 0
        self._values = 0
        self._depth = 0
        self._sizes: dict[str | None, int] = {}
        """Characters by anchor."""

    def value(self, event: Any) -> Any:
        """The value that begins with this event."""
        if event.__class__ is AliasEvent:
            self._count(self._sizes.get(event.anchor, 0))
            return super().value(event)
        before = self._characters
        self._count(1 + len(getattr(event, "value", "")))
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _TooMuchError(f"is nested more than {_DEEPEST} levels deep; flatten it")
        found = super().value(event)
        self._depth -= 1
        if event.anchor is not None:
            self._sizes[event.anchor] = self._characters - before
        return found

    def key(self, event: Any) -> str:
        """The key that this event is."""
        found = super().key(event)
        self._count(len(found))
        if event.anchor is not None:
            self._sizes[event.anchor] = len(found)
        return found

    def repeated(self, event: Any, key: str) -> None:
        """Be patient with it."""

    def _count(self, characters: int) -> None:
        self._characters += characters
        self._values += 1
        if self._characters > _LONGEST:
            raise _TooMuchError(f"has more than {_LONGEST} characters when its aliases are written out; shorten it")
        if self._values > _MOST_VALUES:
            raise _TooMuchError(f"has more than {_MOST_VALUES} keys and values; shorten it")


def _yaml_kind(document: object) -> str:
    kinds = {str: "string", list: "list", bool: "boolean", int: "number", float: "number"}
    return kinds.get(type(document), type(document).__name__)
