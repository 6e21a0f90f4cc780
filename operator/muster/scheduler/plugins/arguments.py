"""Parsers for the values in a plugin's `arguments`. Each raises ValueError with what is wrong."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

T = TypeVar("T")
_LARGEST = 2**63 - 1
"""What a whole number, or the nanoseconds of a time, may be (Volcano's Go types)."""
_EXPONENT = re.compile(r"[eE][+-]?0*([0-9]+)\s*$")
_LONGEST_EXPONENT = 3
_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = 120


def shown(value: object) -> str:
    """A value for a message. Aliases can make a small file mean a value without end, so not all of it."""
    return _SHOWN.repr(value)


def integer(value: object) -> int:
    """A whole number; Volcano's files sometimes quote it."""
    if isinstance(value, str):
        value = int(value) if value.strip().lstrip("+-").isdigit() else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, not {shown(value)}")
    if abs(value) > _LARGEST:
        raise ValueError("must be a whole number of 64 bits")
    return value


def natural(value: object) -> int:
    """A whole number; one below 0 means 0, as Volcano reads it."""
    return max(0, integer(value))


def number(value: object) -> Fraction:
    """A number, taken as written: 1.2 is exactly twelve tenths."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"must be a number, not {shown(value)}")
    try:
        exponent = _EXPONENT.search(str(value))
        if exponent is not None and len(exponent[1]) > _LONGEST_EXPONENT:
            raise ValueError("an exponent that would take for ever to work out")
        found = Fraction(str(value))
        float(found)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ValueError(f"must be a number, not {shown(value)}") from None
    return found


def boolean(value: object) -> bool:
    """true or false; Volcano's files sometimes quote it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(f"must be true or false, not {shown(value)}")


def only(parse: Callable[[object], object], neutral: object) -> Callable[[object], object]:
    """An argument of Volcano that is not supported here: accepted only with the value that switches it off."""

    def check(value: object) -> object:
        if parse(value) != neutral:
            raise ValueError(f"is not supported yet, only {neutral!r} is accepted")
        return neutral

    return check


def names(value: object) -> tuple[str, ...]:
    """Names separated by commas, or a list of them."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"must be names separated by commas, not {shown(value)}")
    return tuple(each.strip() for each in value if each.strip())


def mapping(parse: Callable[[object], T]) -> Callable[[object], dict[str, T]]:
    """A mapping from names to values that `parse` understands."""

    def check(value: object) -> dict[str, T]:
        found: dict[str, T] = {}
        for key, one in _items(value):
            try:
                found[key] = parse(one)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
        return found

    return check


def record(fields: Mapping[str, Callable[[object], Any]]) -> Callable[[object], dict[str, Any]]:
    """A mapping with these keys and no others, each with its own parser."""

    def check(value: object) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, one in _items(value):
            parse = fields.get(key)
            if parse is None:
                raise ValueError(f"{key} is not known (known: {', '.join(sorted(fields))})")
            try:
                found[key] = parse(one)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
        return found

    return check


def _items(value: object) -> list[tuple[str, object]]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ValueError(f"must be a mapping, not {shown(value)}")
    return list(value.items())


_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration(value: object) -> float:
    """A time as Go writes it (`1h2m3.5s`), in seconds."""
    text = value.strip() if isinstance(value, str) else ""
    sign = -1.0 if text.startswith("-") else 1.0
    digits = text.lstrip("+-")
    if digits == "0":
        return 0.0
    parts = _DURATION.findall(digits)
    if not parts or "".join(amount + unit for amount, unit in parts) != digits:
        raise ValueError(f"must be a time such as 90s or 1h30m, not {shown(value)}")
    seconds = sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
    if seconds > _LARGEST / 1e9:
        raise ValueError(f"must be a time of less than 292 years, not {shown(value)}")
    return sign * seconds
