"""The text of a scheduler's configuration, by itself or in the ConfigMap that it comes from.

Whoever tries a configuration has it as a ConfigMap (Volcano's is `volcano-scheduler-configmap`), so that is taken too,
and a fault in it is named with the line at which it stands in the manifest, as far as that can be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import yaml

from muster.engine.yaml_lines import repeated_key
from muster.scheduler.conf import ConfigurationError
from muster.yaml_documents import SafeLoader

_KEYS: Final = ("volcano-scheduler.conf", "scheduler.yaml")
"""Where Volcano and Muster keep it; in a ConfigMap with one key the name is anybody's."""


@dataclass(frozen=True, slots=True)
class ConfigurationText:
    """The text, and where it was found.

    `name` is the file's, `key` the data key of a ConfigMap (empty for a plain file), `lines_before` how many lines of
    the file come before the text; None where its lines are none of the file's.
    """

    content: bytes
    name: str
    key: str = ""
    lines_before: int | None = 0

    @property
    def place(self) -> str:
        """The text as a whole, in words."""
        return f"{self.name}, data[{self.key}]" if self.key else self.name

    def at(self, line: int) -> str:
        """The place of a line (from 1) of the text, in words."""
        if self.lines_before is None:
            return f"{self.place}, line {line}"
        return f"{self.name}, line {self.lines_before + line}"


def find_configuration(content: bytes, name: str) -> ConfigurationText:
    """The configuration in a file called `name`. Raises ConfigurationError for a ConfigMap that has none."""
    plain = ConfigurationText(content, name)
    try:
        node = yaml.compose(content, Loader=SafeLoader)
    except Exception:  # what is wrong with it, whoever reads it will find too, and say
        return plain
    if not isinstance(node, yaml.MappingNode) or _text(_value(node, "kind")) != "ConfigMap":
        return plain
    twice = repeated_key(content)
    if twice is not None:
        raise ConfigurationError(plain.at(twice[1]), f"{twice[0]} is there twice")
    key, value = _chosen(node, name)
    text = _text(value)
    if text is None:
        raise ConfigurationError(f"{name}: data[{key}]", "must be text")
    literal = isinstance(value, yaml.ScalarNode) and value.style == "|"
    return ConfigurationText(text.encode(), name, key, value.start_mark.line + 1 if literal else None)


def _chosen(node: yaml.MappingNode, name: str) -> tuple[str, yaml.Node]:
    data = _value(node, "data")
    entries = {_text(key) or "": value for key, value in data.value} if isinstance(data, yaml.MappingNode) else {}
    known = next((key for key in _KEYS if key in entries), None)
    key = known if known is not None else next(iter(entries)) if len(entries) == 1 else None
    if key is None:
        found = ", ".join(entries) or "nothing"
        problem = f"a ConfigMap with the scheduler's configuration has it under {_KEYS[0]} or {_KEYS[1]}, or alone"
        raise ConfigurationError(f"{name}: data", f"{problem}; this one has {found}")
    return key, entries[key]


def _value(node: yaml.MappingNode, name: str) -> yaml.Node | None:
    return next((value for key, value in node.value if _text(key) == name), None)


def _text(node: yaml.Node | None) -> str | None:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None
