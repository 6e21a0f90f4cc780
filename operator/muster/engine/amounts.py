"""Kubernetes resource lists to exact integer amounts in the units of the scheduler (see `muster.quantities`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muster.quantities import QuantityError, units

Amounts = dict[str, int]
"""Resource name to amount: milli-CPU, bytes of memory, pods, thousandths of everything else."""


class TranslationError(Exception):
    """An object that the scheduler can't be told about: `path` names the field, `message` what is wrong with it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


def amounts(quantities: Mapping[str, str | int | float] | None, path: str) -> Amounts:
    """Translate a resource list that stands at `path`. Raises TranslationError for what is no quantity, or negative."""
    found: Amounts = {}
    for name, quantity in (quantities or {}).items():
        try:
            amount = units(quantity, name)
        except QuantityError as error:
            raise TranslationError(f"{path}[{name}]", str(error)) from error
        if amount < 0:
            raise TranslationError(f"{path}[{name}]", f"{quantity!r} is negative")
        found[name] = amount
    return found


def total(parts: Iterable[Mapping[str, int]]) -> Amounts:
    """Add resource lists up."""
    result: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            result[name] = result.get(name, 0) + amount
    return result


def largest(parts: Iterable[Mapping[str, int]]) -> Amounts:
    """The largest amount of each resource in any of the lists."""
    result: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            result[name] = max(result.get(name, 0), amount)
    return result
