"""Selectors over labels: of nodes (terms of node affinity) and of pods (affinity to other pods, topology spread).

All values are frozen and hashable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")


class Operator(Enum):
    """Kubernetes' node selector operators; selectors of pods know the first four."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


def whole_number(text: str | None) -> int | None:
    """The number that a label or taint stands for, None for what Kubernetes does not read as one."""
    return int(text) if text is not None and _WHOLE_NUMBER.fullmatch(text) else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a selector, over a label or (in a node's `fields`) over `metadata.name`."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet it. An unparsable number never matches Gt or Lt."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        left, right = whole_number(value), whole_number(self.values[0] if self.values else None)
        if left is None or right is None:
            return False
        return left > right if self.operator is Operator.GT else left < right


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A conjunction of requirements; one without any matches everything (unlike a term of node affinity)."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet all of it."""
        return all(each.matches(labels) for each in self.requirements)


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Pods of some namespaces: the named ones, and those whose labels `namespace_selector` matches.

    Without `labels` it selects no pod (Kubernetes: an absent selector, unlike an empty one).
    """

    labels: LabelSelector | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether a pod of that namespace with these labels is selected."""
        if self.labels is None or not self.labels.matches(labels):
            return False
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)
