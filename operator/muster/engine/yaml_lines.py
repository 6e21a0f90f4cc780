"""Where in a YAML text a field stands, so that an error can name its line."""

from __future__ import annotations

import re

import yaml

_INDEX = re.compile(r"\[(\d+)\]")


def line_of(text: str, field: str) -> int | None:
    """The line (from 1) of a field such as `tiers[0].plugins[1].arguments.binpack.cpu`.

    Of a field that is not there, the line of what should hold it; None when the text says nothing about it.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return _find(node, field) if node is not None and field else None


def _find(node: yaml.Node, path: str) -> int:
    start: int = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and (match := _INDEX.match(path)) is not None:
        index = int(match.group(1))
        return _find(node.value[index], path[match.end() :].lstrip(".")) if index < len(node.value) else start
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            rest = _after(path, key.value) if isinstance(key, yaml.ScalarNode) else None
            if rest is not None:
                return _find(value, rest) if rest else key.start_mark.line + 1
    return start


def _after(path: str, key: str) -> str | None:
    """What of the path is left below `key`, None when it does not lead there. A key may hold dots itself."""
    if not path.startswith(key):
        return None
    rest = path[len(key) :]
    if rest and rest[0] not in ".[":
        return None
    return rest.lstrip(".")
