"""What the claims to devices of a queue's pods count against the queue: each once, however many of its pods use it.

A claim counts as used as long as one of its pods does, and as leaving when only leaving pods are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from muster.scheduler.resources import Resources

Weigh = Callable[[str], Resources]
"""How many devices of which classes a claim asks for, as scalars `deviceclass/<class>`."""


def weigh_nothing(_claim: str) -> Resources:
    """Devices count against nobody."""
    return Resources()


@dataclass(slots=True)
class _Charge:
    using: int = 0
    leaving: int = 0
    allocated: Resources | None = None
    releasing: Resources | None = None


class ClaimCharges:
    """The charges of one queue, entered in `accounts()`: pairs of what is allocated and what is being released."""

    def __init__(self, accounts: Callable[[], Iterable[tuple[Resources, Resources]]], weigh: Weigh) -> None:
        self._accounts = accounts
        self._weigh = weigh
        self._charges: dict[str, _Charge] = {}

    def count(self, claims: Iterable[str], sign: int, *, leaving: bool) -> None:
        """One pod more (1) or fewer (-1) has these claims."""
        for key in claims:
            charge = self._charges.setdefault(key, _Charge())
            if leaving:
                charge.leaving += sign
            else:
                charge.using += sign
            self._enter(key, charge)
            if not charge.using and not charge.leaving:
                del self._charges[key]

    def reweigh(self, key: str) -> bool:
        """The claim asks for something else than before; whether it is one of the queue's."""
        charge = self._charges.get(key)
        if charge is None:
            return False
        charge.allocated = self._replace(charge.allocated, None, released=False)
        charge.releasing = self._replace(charge.releasing, None, released=True)
        self._enter(key, charge)
        return True

    def of_new(self, claims: Iterable[str]) -> Resources:
        """What those of the claims would add that do not count as used yet."""
        found = Resources()
        for key in claims:
            charge = self._charges.get(key)
            if charge is None or not charge.using:
                found.add(self._weigh(key))
        return found

    def _enter(self, key: str, charge: _Charge) -> None:
        used = charge.using > 0
        released = not used and charge.leaving > 0
        if used is not (charge.allocated is not None):
            charge.allocated = self._replace(charge.allocated, self._weigh(key) if used else None, released=False)
        if released is not (charge.releasing is not None):
            charge.releasing = self._replace(charge.releasing, self._weigh(key) if released else None, released=True)

    def _replace(self, old: Resources | None, new: Resources | None, *, released: bool) -> Resources | None:
        for allocated, releasing in self._accounts():
            account = releasing if released else allocated
            if old is not None:
                account.sub(old)
            if new is not None:
                account.add(new)
        return new
