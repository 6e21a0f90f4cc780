"""Parsers for the values in a plugin's `arguments`. Each raises ValueError with what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction


def integer(value: object) -> int:
    """A whole number; Volcano's files sometimes quote it."""
    if isinstance(value, str):
        value = int(value) if value.strip().lstrip("+-").isdigit() else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, not {value!r}")
    return value


def number(value: object) -> Fraction:
    """A number, taken as written: 1.2 is exactly twelve tenths."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"must be a number, not {value!r}")
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"must be a number, not {value!r}") from None


def boolean(value: object) -> bool:
    """true or false; Volcano's files sometimes quote it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(f"must be true or false, not {value!r}")


def only(parse: Callable[[object], object], neutral: object) -> Callable[[object], object]:
    """An argument of Volcano that is not supported here: accepted only with the value that switches it off."""

    def check(value: object) -> object:
        if parse(value) != neutral:
            raise ValueError(f"is not supported yet, only {neutral!r} is accepted")
        return neutral

    return check
