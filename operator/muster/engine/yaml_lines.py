"""Where in a YAML text a field stands, so that an error can name its line; and fields that stand there twice."""

from __future__ import annotations

import re

import yaml

from muster.yaml_documents import SafeLoader

_INDEX = re.compile(r"\[(\d+)\]")


def line_of(text: bytes, field: str) -> int | None:
    """The line (from 1) of a field such as `tiers[0].plugins[1].arguments.binpack.cpu`, "" for the whole.

    Of a field that is not there, the line of what should hold it; None for a text that is no YAML.
    """
    try:
        node = yaml.compose(text, Loader=SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return _find(node, field) if node is not None else 1


def repeated_key(text: bytes) -> tuple[str, int] | None:
    """The first key that stands twice in one mapping, with its second line. PyYAML would let the first one go unseen.

    Raises YAMLError.
    """
    node = yaml.compose(text, Loader=SafeLoader)
    waiting = [node] if node is not None else []
    seen_nodes: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen_nodes:  # an alias
            continue
        seen_nodes.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += reversed(node.value)
        if isinstance(node, yaml.MappingNode):
            keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            seen: set[str] = set()
            for key in keys:
                if key.value in seen:
                    return key.value, key.start_mark.line + 1
                seen.add(key.value)
            waiting += [value for _, value in reversed(node.value)]
    return None


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
