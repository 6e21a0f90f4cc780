"""Which devices a selector means: CEL expressions over `device`, as kube-scheduler reads them.

An expression that asks a device for something that it has not got does not select it. One that can't be evaluated for
any other reason (a function that only Kubernetes has) selects every device: kube-scheduler has the last word, and a
gang whose pod it can't place is rolled back.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from muster.quantities import QuantityError, parse_quantity
from muster.scheduler.devices import AttributeValue, Device, QualifiedName, Version

if TYPE_CHECKING:
    from cel import Program

logger = logging.getLogger(__name__)

_DOMAIN: Final = re.compile(r"""\.(attributes|capacity)\[\s*(?:"([^"]*)"|'([^']*)')\s*\]""")
_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
_REMEMBERED: Final = 1024

Value = Mapping[str, str]
"""A quantity or a version as CEL sees it here: a map of one entry, so that equal ones are equal."""
_QUANTITY, _SEMVER = "quantity", "semver"


class DeviceSelectors:
    """Evaluates selectors; what an expression means is worked out once."""

    def __init__(self) -> None:
        self._programs: dict[str, Program | None] = {}

    def __call__(self, expression: str, device: Device) -> bool:
        """Whether the expression selects the device."""
        program = self._program(expression)
        if program is None:
            return True
        try:
            answer = program.execute({"device": _variable(expression, device), **_FUNCTIONS})
        except KeyError:
            return False
        except Exception as error:
            logger.debug("whether %r selects %s is left to kube-scheduler: %s", expression, device.id, error)
            return True
        return answer if isinstance(answer, bool) else True

    def _program(self, expression: str) -> Program | None:
        if expression in self._programs:
            return self._programs[expression]
        # Loading it takes a while, and most clusters never need it.
        import cel

        if len(self._programs) >= _REMEMBERED:
            self._programs.clear()
        program: Program | None = None
        try:
            program = cel.compile(expression)
        except ValueError as error:
            logger.info("the selector %r is left to kube-scheduler: %s", expression, str(error).partition("\n")[0])
        self._programs[expression] = program
        return program


def _variable(expression: str, device: Device) -> dict[str, Any]:
    """The device as CEL sees it. A domain that it knows nothing of is empty, not missing."""
    attributes = _by_domain(device.attributes, _attribute)
    capacity = _by_domain(device.capacity, _quantity_value)
    for kind, one, other in _DOMAIN.findall(expression):
        (attributes if kind == "attributes" else capacity).setdefault(one or other, {})
    return {
        "driver": device.driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.divisible,
    }


def _by_domain(values: Mapping[QualifiedName, Any], convert: Callable[[Any], Any]) -> dict[str, dict[str, Any]]:
    domains: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for (domain, name), value in values.items():
        domains[domain][name] = convert(value)
    return dict(domains)


def _attribute(value: AttributeValue) -> Any:
    return {_SEMVER: value.text} if isinstance(value, Version) else value


def _quantity_value(value: Fraction) -> Value:
    return {_QUANTITY: str(value)}


# --- the functions of Kubernetes ---


def _quantity(text: str) -> Value:
    return _quantity_value(parse_quantity(text))


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def _semver(text: str) -> Value:
    _version_key(text)
    return {_SEMVER: text}


def _is_semver(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def _number(value: Value) -> Fraction:
    return Fraction(value[_QUANTITY])


@lru_cache(maxsize=_REMEMBERED)
def _version_key(text: str) -> tuple[Any, ...]:
    """Sorts versions by the rules of semver.org. Raises ValueError."""
    match = _VERSION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no semantic version")
    major, minor, patch, pre = match.groups()
    parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")] if pre else []
    return (int(major), int(minor), int(patch), pre is None, tuple(parts))


def _order(value: Value) -> Any:
    return _version_key(value[_SEMVER]) if _SEMVER in value else _number(value)


def _compare(left: Value, right: Value) -> int:
    ours, theirs = _order(left), _order(right)
    return int(ours > theirs) - int(ours < theirs)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "semver": _semver,
    "isSemver": _is_semver,
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "sign": lambda value: (_number(value) > 0) - (_number(value) < 0),
    "add": lambda left, right: _quantity_value(_number(left) + (_number(right) if isinstance(right, dict) else right)),
    "sub": lambda left, right: _quantity_value(_number(left) - (_number(right) if isinstance(right, dict) else right)),
    "isInteger": lambda value: _number(value).denominator == 1,
    "asInteger": lambda value: int(_number(value)),
    "asApproximateFloat": lambda value: float(_number(value)),
    "major": lambda value: _version_key(value[_SEMVER])[0],
    "minor": lambda value: _version_key(value[_SEMVER])[1],
    "patch": lambda value: _version_key(value[_SEMVER])[2],
}
