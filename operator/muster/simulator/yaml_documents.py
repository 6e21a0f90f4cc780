"""YAML as Kubernetes reads it, and fast.

PyYAML's C parser builds the nodes; turning them into dicts and lists here takes half the time of its own constructors,
which matters for thousands of pods. What is text to Kubernetes stays text: times (`2026-01-01T00:00:00Z`), `10:30`,
`=`. Keys are always text, a key that is there twice is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

_STR: Final = "tag:yaml.org,2002:str"
_NULL: Final = "tag:yaml.org,2002:null"
_COLLECTIONS: Final = {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}
_MERGE: Final = "tag:yaml.org,2002:merge"
_NOT_IN_KUBERNETES: Final = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value"}
_NUMBERS: Final = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
_SEXAGESIMAL: Final = re.compile(r"[-+]?[0-9_]+(:[0-9_.]+)+")


class YamlError(ValueError):
    """Text that is no YAML, or that Kubernetes would not read; `document` counts from 1."""

    def __init__(self, document: int, problem: str) -> None:
        super().__init__(problem)
        self.document = document


class _Loader(yaml.CSafeLoader):
    """The parser, without the types that Kubernetes does not know."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_IN_KUBERNETES]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def yaml_documents(text: bytes) -> Iterator[tuple[int, Any]]:
    """The documents that hold something, with their numbers. Raises YamlError."""
    number = 1
    try:
        loader = _Loader(text)
        try:
            while loader.check_node():
                found = _Values(loader, shared=b"&" in text).value(loader.get_node())
                if found is not None:
                    yield number, found
                number += 1
        finally:
            loader.dispose()
    except RecursionError as error:
        raise YamlError(number, "nested too deep") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8, a number that is none
        raise YamlError(number, f"not YAML: {_one_line(error)}") from error


class _Values:
    """Nodes to values. `shared`: there are anchors, so one node may stand in several places."""

    def __init__(self, loader: _Loader, *, shared: bool) -> None:
        self._loader = loader
        self._scalars: dict[tuple[str, str], Any] = {}
        self._shared: dict[int, Any] | None = {} if shared else None

    def value(self, node: yaml.Node | None) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.tag == _STR else self._scalar(node)
        if node is None or self._shared is None:
            return self._collection(node)
        known = self._shared.get(id(node))
        if known is None:
            known = self._shared[id(node)] = self._collection(node)
        return known

    def _collection(self, node: yaml.Node | None) -> Any:
        if node is not None and node.tag not in _COLLECTIONS:
            raise yaml.YAMLError(f"Kubernetes knows no {node.tag}{_line(node)}")
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each) for each in node.value]
        return self._mapping(node) if isinstance(node, yaml.MappingNode) else None

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                merged = {**self._merged(value), **merged}
                continue
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.YAMLError(f"a key has to be text{_line(key)}")
            if key.value in found:
                raise yaml.YAMLError(f"key {key.value!r} is there twice{_line(key)}")
            found[key.value] = self.value(value)
        return {**merged, **found} if merged else found

    def _merged(self, node: yaml.Node) -> dict[str, Any]:
        parts = [self.value(each) for each in node.value] if isinstance(node, yaml.SequenceNode) else [self.value(node)]
        merged: dict[str, Any] = {}
        for part in reversed(parts):
            if not isinstance(part, dict):
                raise yaml.YAMLError(f"<< needs a mapping{_line(node)}")
            merged.update(part)
        return merged

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        if node.tag == _NULL:
            return None
        key = (node.tag, node.value)
        if key not in self._scalars:
            sexagesimal = node.tag in _NUMBERS and _SEXAGESIMAL.fullmatch(node.value)
            self._scalars[key] = node.value if sexagesimal else self._loader.construct_object(node)
        return self._scalars[key]


def _line(node: yaml.Node) -> str:
    return f" (line {node.start_mark.line + 1})" if node.start_mark else ""


def _one_line(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} (line {mark.line + 1}, column {mark.column + 1})"
    return " ".join(str(error).split())
