"""Which part of what a user wrote a place in what Muster made of it comes from.

Muster adds to what is written and keeps its order, so that an element of a list is found again by its equal, by its
name (the first of that name is the first that was written), or, where elements have no names, by its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

Step = str | int

_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def steps(path: str) -> list[Step]:
    """The parts of a field path: keys, and the places in lists as numbers."""
    found = (match.groups() for match in _STEP.finditer(path))
    return [
        key if bracketed is None else int(bracketed) if bracketed.isdecimal() else f"[{bracketed}]"
        for bracketed, key in found
    ]


def joined(path: Sequence[Step]) -> str:
    """The field path of these parts."""
    text = "".join(f"[{step}]" if isinstance(step, int) else step if step[0] == "[" else f".{step}" for step in path)
    return text.removeprefix(".")


def counterpart(path: Sequence[Step], made: Any, written: Any) -> tuple[list[Step], list[Step]]:
    """The place in `written` that is at `path` in `made`, and what is left of the path where Muster's own part begins.

    What neither has is not Muster's: something that is missing is missing at the same place.
    """
    found: list[Step] = []
    for number, step in enumerate(path):
        if isinstance(step, int) and _is_list(made) and step < len(made):
            place = _place(step, made, written if _is_list(written) else [])
            if place is None:
                return found, list(path[number:])
            made, written = made[step], written[place]
            found.append(place)
            continue
        key = step.strip("[]") if isinstance(step, str) else step
        inner = made.get(key) if isinstance(made, Mapping) else None
        ours = written.get(key) if isinstance(written, Mapping) else None
        if inner is None:
            return [*found, *path[number:]], []
        if ours is None:
            return found, list(path[number:])
        made, written = inner, ours
        found.append(step)
    return found, []


def _place(index: int, made: Sequence[Any], written: Sequence[Any]) -> int | None:
    element = made[index]
    if index < len(written) and written[index] == element:
        return index
    if element in written:
        return written.index(element)
    name = _name(element)
    if name is None or (index < len(written) and _name(written[index]) is None):
        return index if index < len(written) else None
    before = sum(_name(other) == name for other in made[:index])
    of_that_name = [place for place, other in enumerate(written) if _name(other) == name]
    return of_that_name[before] if before < len(of_that_name) else None


def _name(element: Any) -> Any:
    return element.get("name") if isinstance(element, Mapping) else None


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
