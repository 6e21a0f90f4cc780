"""YAML as Kubernetes reads it, and fast.

PyYAML's C parser gives events; making values of them here takes a third of the time of its own loader, which matters
for thousands of pods. What is text to Kubernetes stays text: times (`2026-01-01T00:00:00Z`), `10:30`, `=`. Keys are
always text, and a key that is there twice is refused.

Text that anybody may have written needs a `Values` with limits of its own: here a few aliases can stand for gigabytes.
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


SafeLoader: Final[type[yaml.SafeLoader] | type[yaml.CSafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's: PyYAML's scanner in Python, for where libyaml is not, takes ten times as long, and for thousands of open
brackets the square of that."""


class YamlError(ValueError):
    """Text that is no YAML, or that Kubernetes would not read; `document` counts from 1.

    `discreet` says the same without a word of the text, which may hold secrets.
    """

    def __init__(self, document: int, problem: str, discreet: str) -> None:
        super().__init__(problem)
        self.document = document
        self.discreet = discreet


class _Refusal(yaml.MarkedYAMLError):
    """What YAML has and Kubernetes does not read: `problem` with "{}" where `quoted` belongs."""

    def __init__(self, event: Any, problem: str, quoted: str = "…") -> None:
        super().__init__(problem=problem.format(quoted), problem_mark=event.start_mark)
        self.discreet = _with_place(problem.format("…"), event.start_mark)


def yaml_documents(text: bytes, values: type[Values] | None = None) -> Iterator[tuple[int, Any]]:
    """The documents that hold something, with their numbers, each read by a new `values`. Raises YamlError."""
    read = values or Values
    number = 0
    try:
        parser = SafeLoader(text)
        try:
            next_event = parser.get_event
            event: Any = next_event()
            while event.__class__ is not StreamEndEvent:
                number += event.__class__ is DocumentStartEvent
                if event.__class__ is DocumentStartEvent:
                    found = read(next_event).value(next_event())
                    if found is not None:
                        yield number, found
                event = next_event()
        finally:
            parser.dispose()
    except RecursionError as error:
        raise YamlError(number, "nested too deep", "nested too deep") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8
        raise YamlError(max(1, number), f"not YAML: {_one_line(error)}", f"not YAML: {_discreet(error)}") from error


class Values:
    """The events of one document to its value. A subclass may be stricter, or more patient with repeated keys."""

    def __init__(self, next_event: Callable[[], Any]) -> None:
        self._next = next_event
        self._anchors: dict[str, Any] = {}

    def value(self, event: Any) -> Any:
        """The value that begins with this event."""
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
            key = self.key(event)
            if key == "<<" and event.implicit[0]:
                merged = {**self._merged(event), **(merged or {})}
            else:
                if key in found:
                    self.repeated(event, key)
                found[key] = self.value(following())
            event = following()
        return found if merged is None else {**merged, **found}

    def repeated(self, event: Any, key: str) -> None:
        """The mapping has had this key already."""
        _refuse(event, "key {} is there twice", repr(key))

    def key(self, event: Any) -> str:
        """The key that this event is."""
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
            _refuse(event, "*{} stands for nothing that came before", name)
        return self._anchors[name]


def _scalar(event: Any) -> Any:
    if event.tag is None:
        return _plain(event.value) if event.implicit[0] else event.value
    if event.tag in _STR:
        return event.value
    found = _plain(event.value)
    if not isinstance(found, _TAGGED.get(event.tag.removeprefix(_CORE), ())):
        _refuse(event, "{} is not what Kubernetes knows by its tag", f"{event.value!r} with {event.tag}")
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
        _refuse(event, "Kubernetes knows no {}", event.tag)


def _refuse(event: Any, problem: str, quoted: str = "…") -> NoReturn:
    raise _Refusal(event, problem, quoted)


def _one_line(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        told = ", ".join(filter(None, (error.context, error.problem)))
        return _with_place(told, error.problem_mark)
    return " ".join(str(error).split())


def _discreet(error: Exception) -> str:
    """libyaml's own messages quote nothing."""
    match error:
        case _Refusal():
            return error.discreet
        case UnicodeError():
            return "not UTF-8"
        case _:
            return _one_line(error)


def _with_place(problem: str, mark: yaml.Mark) -> str:
    return f"{problem} (line {mark.line + 1}, column {mark.column + 1})"
