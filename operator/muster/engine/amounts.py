"""Kubernetes resource lists to exact integer amounts in the units of the scheduler (see `muster.quantities`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muster.quantities import QuantityError, format_quantity, parse_quantity, units
from muster.scheduler.resources import CPU, MEMORY, Resources

Amounts = dict[str, int]
"""Resource name to amount: milli-CPU, bytes of memory, pods, thousandths of everything else."""


class TranslationError(Exception):
    """An object that the scheduler can't be told about: `path` names the field, `message` what is wrong with it."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


def amounts(quantities: Mapping[str, str | int | float] | None, path: str, *, round_down: bool = False) -> Amounts:
    """Translate a resource list that stands at `path`, rounding parts of a unit up (or down, for what is on offer).

    Raises TranslationError for what is no quantity, or negative.
    """
    found: Amounts = {}
    for name, quantity in (quantities or {}).items():
        try:
            amount = units(quantity, name)
            if round_down and amount > 0 and not _is_exact(amount, quantity, name):
                amount -= 1
        except QuantityError as error:
            raise TranslationError(f"{path}[{name}]", str(error)) from error
        if amount < 0:
            raise TranslationError(f"{path}[{name}]", f"{quantity!r} is negative")
        found[name] = amount
    return found


def _is_exact(amount: int, quantity: str | int | float, name: str) -> bool:
    scale = units("1", name)
    return parse_quantity(quantity) * scale == amount


def resources(found: Mapping[str, int]) -> Resources:
    """Amounts as the scheduler's value."""
    scalars = {name: amount for name, amount in found.items() if name not in (CPU, MEMORY)}
    return Resources(found.get(CPU, 0), found.get(MEMORY, 0), scalars)


def quantities(amount: Resources) -> dict[str, str]:
    """A resource list as Kubernetes writes it; CPU and memory are always named."""
    return {name: format_quantity(amount.get(name), name) for name in amount.dimensions()}


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
