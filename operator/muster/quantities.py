"""Kubernetes quantities: exact numbers out of `500m`, `1.5Gi`, `1e3`, and back.

A quantity is a decimal number with an optional suffix: binary (Ki to Ei), decimal (n, u, m, k to E) or an exponent.
Everything is exact (`Fraction`); there is no float anywhere, so sums never drift. As on the API server, a part finer
than a nano-unit rounds up in size to the next nano, and a size beyond 2^63-1 counts as 2^63-1.

Inside Muster an amount is an integer in the *unit of its resource*: milli-CPU for `cpu`, bytes for `memory`, pieces for
`pods`, and thousandths for everything else. `units` and `format_quantity` go there and back.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exponent>[+-]?[0-9]+))",
)
_BINARY: Final = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
_DECIMAL: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    **{letter: Fraction(10 ** (3 * power)) for power, letter in enumerate(["", "k", "M", "G", "T", "P", "E"])},
}
_THOUSANDS: Final = ("k", "M", "G", "T", "P", "E")
_LARGEST: Final = Fraction(2**63 - 1)
_NANO: Final = 10**9
_LONGEST_TEXT: Final = 300
_LARGEST_EXPONENT: Final = 400
"""With the longest text, a number with this exponent is beyond every bound already; larger ones cost only time."""
_EXPONENT: Final = re.compile(r"[eE][+-]?([0-9]+)\Z")

_WHOLE: Final = frozenset({"memory", "pods"})
_BYTES: Final = frozenset({"memory", "ephemeral-storage", "storage"})


class QuantityError(ValueError):
    """The text is not a quantity. `text` holds what was given."""

    def __init__(self, text: object) -> None:
        shown = repr(text)
        shown = shown if len(shown) <= 80 else shown[:77] + "..."
        super().__init__(f"{shown} is not a quantity (a number with an optional suffix, such as 2, 500m, 1.5Gi, 1e3)")
        self.text = text


def parse_quantity(text: str | int | float) -> Fraction:
    """The exact value of a quantity as it stands in YAML or JSON (so plain numbers are welcome too).

    Negative values parse: whether one is allowed is the caller's question. Raises QuantityError.
    """
    if isinstance(text, str):
        return _parse(text)
    if isinstance(text, bool) or not isinstance(text, int | float) or not math.isfinite(text):
        raise QuantityError(text)
    if isinstance(text, int) and abs(text) >= _LARGEST:
        return _LARGEST if text > 0 else -_LARGEST
    return _parse(repr(text))


def is_costly(quantity: object) -> bool:
    """Whether the API server had better not be asked to read this: more than 300 characters, or an exponent beyond 400.

    It works exponents out in full, to as many digits as they say: 1e10000000 takes it seconds, 1e2147483647 hours and
    gigabytes. No real amount comes near: what is larger than 9e18 counts as that, what is smaller than 1e-9 as that.
    The server takes spaces around a quantity away, and so they hide nothing here.
    """
    if not isinstance(quantity, str):
        return False
    exponent = _EXPONENT.search(quantity[-_LONGEST_TEXT:].strip())
    return len(quantity) > _LONGEST_TEXT or (exponent is not None and int(exponent[1]) > _LARGEST_EXPONENT)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction:
    match = _GRAMMAR.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise QuantityError(text)
    size = Fraction(match["digits"].removesuffix(".")) * _scale(match["suffix"] or "", match["exponent"])
    size = min(Fraction(math.ceil(size * _NANO), _NANO), _LARGEST)
    return -size if match["sign"] == "-" else size


def _scale(suffix: str, exponent: str | None) -> Fraction:
    if exponent is not None:
        bounded = max(-_LARGEST_EXPONENT, min(int(exponent), _LARGEST_EXPONENT))
        return Fraction(10) ** bounded
    if suffix in _BINARY:
        return Fraction(_BINARY[suffix])
    return _DECIMAL[suffix]


def milli(quantity: str | int | float) -> int:
    """The quantity in thousandths, rounded up. Raises QuantityError."""
    return math.ceil(parse_quantity(quantity) * 1000)


def whole(quantity: str | int | float) -> int:
    """The quantity in whole units, rounded up. Raises QuantityError."""
    return math.ceil(parse_quantity(quantity))


def units(quantity: str | int | float, resource: str) -> int:
    """The quantity as an integer in the unit of this resource, rounded up (see the module). Raises QuantityError."""
    if isinstance(quantity, str):
        return _units_of_text(quantity, resource)
    return whole(quantity) if resource in _WHOLE else milli(quantity)


@lru_cache(maxsize=4096)
def _units_of_text(quantity: str, resource: str) -> int:
    """The pods of a cluster ask for the same few amounts over and over."""
    return whole(quantity) if resource in _WHOLE else milli(quantity)


def format_quantity(amount: int, resource: str) -> str:
    """The shortest exact quantity for an amount in the unit of this resource: `1500m`, `2`, `16Gi`."""
    thousandths = amount * 1000 if resource in _WHOLE else amount
    if thousandths % 1000:
        return f"{thousandths}m"
    value = thousandths // 1000
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _with_binary_suffix(value)
    return str(value)


def format_decimal(value: int) -> str:
    """The shortest exact quantity with a decimal suffix: `40G`, `1500M`."""
    for suffix in reversed(_THOUSANDS):
        factor = int(_DECIMAL[suffix])
        if value and value % factor == 0:
            return f"{value // factor}{suffix}"
    return str(value)


def is_binary(quantity: str | int | float) -> bool:
    """Whether the quantity is written with a binary suffix."""
    return isinstance(quantity, str) and quantity.endswith("i")


def _with_binary_suffix(value: int) -> str:
    for suffix, factor in reversed(_BINARY.items()):
        if value and value % factor == 0:
            return f"{value // factor}{suffix}"
    return str(value)
