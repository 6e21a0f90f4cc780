"""YAML as Kubernetes reads it, and fast.

PyYAML's C parser gives events; making values of them here takes a third of the time of its own loader, which matters
for thousands of pods. What is text to Kubernetes stays text: times (`2026-01-01T00:00:00Z`), `10:30`, `=`. Keys are
always text, and a key that is there twice is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

_CORE: Final = "tag:yaml.org,2002:"
_STR: Final = (f"{_CORE}str", "!")
_NULLS: Final = ("", "~", "null", "Null", "NULL")
_TRUE: Final = ("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON")
_FALSE: Final = ("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF")
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(_NULLS),
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
}
_TAGGED: Final[dict[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}
_NUMERIC: Final = frozenset("-+.0123456789")
_INTEGER: Final = re.compile(r"([-+]?)(?:0b([01_]+)|0x([0-9a-fA-F_]+)|0o?([0-7_]+)|(0|[1-9][0-9_]*))")
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_WITH_DOT: Final = re.compile(r"\.(inf|nan)")
_BASES: Final = (2, 16, 8, 10)


class YamlError(ValueError):
    """Text that is no YAML, or that Kubernetes would not read; `document` counts from 1."""

    def __init__(self, document: int, problem: str) -> None:
        super().__init__(problem)
        self.document = document


def yaml_documents(text: bytes) -> Iterator[tuple[int, Any]]:
    """The documents that hold something, with their numbers. Raises YamlError."""
    number = 0
    try:
        parser = yaml.CSafeLoader(text)
        try:
            next_event = parser.get_event
            event: Any = next_event()
            while event.__class__ is not StreamEndEvent:
                number += event.__class__ is DocumentStartEvent
                if event.__class__ is DocumentStartEvent:
                    found = _Values(next_event).value(next_event())
                    if found is not None:
                        yield number, found
                event = next_event()
        finally:
            parser.dispose()
    except RecursionError as error:
        raise YamlError(number, "nested too deep") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8
        raise YamlError(max(1, number), f"not YAML: {_one_line(error)}") from error


class _Values:
    """The events of one document to its value."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        self._next = next_event
        self._anchors: dict[str, Any] = {}

    def value(self, event: Any) -> Any:
        kind = event.__class__
        if kind is ScalarEvent:
            found = _scalar(event)
        elif kind is MappingStartEvent:
            found = self._mapping(event)
        elif kind is SequenceStartEvent:
            found = self._sequence(event)
        else:
            return self._alias(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = found
        return found

    def _sequence(self, start: Any) -> list[Any]:
        _check_tag(start, "seq")
        following, found = self._next, []
        event = following()
        while event.__class__ is not SequenceEndEvent:
            found.append(self.value(event))
            event = following()
        return found

    def _mapping(self, start: Any) -> dict[str, Any]:
        _check_tag(start, "map")
        following = self._next
        found: dict[str, Any] = {}
        merged: dict[str, Any] | None = None
        event = following()
        while event.__class__ is not MappingEndEvent:
            key = self._key(event)
            if key == "<<" and event.implicit[0]:
                merged = {**self._merged(event), **(merged or {})}
            elif key in found:
                _refuse(event, f"key {key!r} is there twice")
            else:
                found[key] = self.value(following())
            event = following()
        return found if merged is None else {**merged, **found}

    def _key(self, event: Any) -> str:
        kind = event.__class__
        if kind is ScalarEvent:
            key: str = event.value
            if event.anchor is not None:
                self._anchors[event.anchor] = key
            return key
        alias = self._alias(event) if kind is AliasEvent else None
        return alias if isinstance(alias, str) else _refuse(event, "a key has to be text")

    def _merged(self, key: Any) -> dict[str, Any]:
        value = self.value(self._next())
        merged: dict[str, Any] = {}
        for part in reversed(value if isinstance(value, list) else [value]):
            if not isinstance(part, dict):
                _refuse(key, "<< needs a mapping")
            merged.update(part)
        return merged

    def _alias(self, event: Any) -> Any:
        name = event.anchor
        if name not in self._anchors:
            _refuse(event, f"*{name} stands for nothing that came before")
        return self._anchors[name]


def _scalar(event: Any) -> Any:
    if event.tag is None:
        return _plain(event.value) if event.implicit[0] else event.value
    if event.tag in _STR:
        return event.value
    found = _plain(event.value)
    if not isinstance(found, _TAGGED.get(event.tag.removeprefix(_CORE), ())):
        _refuse(event, f"{event.value!r} is no {event.tag} that Kubernetes knows")
    return found


def _plain(text: str) -> Any:
    """The value of a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    whole = _INTEGER.fullmatch(text)
    if whole is not None:
        return _integer(whole) if len(text) < 100 else text
    if _FLOAT.fullmatch(text) is None:
        return text
    return float(_WITH_DOT.sub(r"\1", text.lower().replace("_", "")))


def _integer(match: re.Match[str]) -> int | str:
    for digits, base in zip(match.groups()[1:], _BASES, strict=True):
        bare = (digits or "").replace("_", "")
        if bare:
            return -int(bare, base) if match[1] == "-" else int(bare, base)
    return match[0]


def _check_tag(event: Any, name: str) -> None:
    if event.tag is not None and event.tag not in ("!", f"{_CORE}{name}"):
        _refuse(event, f"Kubernetes knows no {event.tag}")


def _refuse(event: Any, problem: str) -> NoReturn:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def _one_line(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} (line {mark.line + 1}, column {mark.column + 1})"
    return " ".join(str(error).split())
