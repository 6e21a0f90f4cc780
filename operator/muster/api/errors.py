"""What is wrong with a custom resource, field by field.

A stored object may be anything: written through an older schema, or with no schema at all. Whoever reads one gets
either a typed model or a MalformedResource that names every field at fault and what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One field that can't be used as it is.

    `path` is the field as users write it (`spec.workerGroupSpecs[0].replicas`); `message` says what to do about it.
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class MalformedResource(ValueError):  # noqa: N818 - the word users meet in events
    """An object whose fields have the wrong types, or that lacks a required one. `problems` is never empty."""

    def __init__(self, kind: str, problems: Iterable[FieldProblem]) -> None:
        self.kind = kind
        self.problems = list(problems)
        super().__init__(f"{kind} can't be read: " + "; ".join(str(problem) for problem in self.problems))
