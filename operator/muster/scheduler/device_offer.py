"""Finding devices for the requests of a pod's claims: any that match will do, no device is given twice.

Requests of different selectivity compete for the same devices, so a device that was chosen may be swapped for another
one as long as all that came before still have theirs (augmenting paths, as kube-scheduler's backtracking would find).
What ties the devices of a claim together (`constraints`) is left to kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from muster.scheduler.devices import Device, DeviceAsk, DeviceId, DeviceRequest, ResourceClaimSpec, Shortage

Matches = Callable[[DeviceAsk, Device], bool]


class Choice:
    """Devices for one request after the other out of those that can be used somewhere, without the `taken` ones."""

    def __init__(self, usable: Sequence[Device], taken: set[DeviceId], matches: Matches) -> None:
        self._usable = usable
        self._taken = taken
        self._matches = matches
        self._owner: dict[DeviceId, int] = {}
        self._wants: list[list[DeviceId]] = []
        """For each device that is to be had, which would do; its place in this list is its number in `_owner`."""

    @property
    def chosen(self) -> set[DeviceId]:
        """The devices that the requests so far would get."""
        return set(self._owner)

    def add(self, request: DeviceRequest) -> Shortage | None:
        """Find devices for one more request; what is lacking for its first alternative when there are none."""
        first: Shortage | None = None
        for ask in request.alternatives:
            shortage = self._add(ask)
            if shortage is None:
                return None
            first = first or shortage
        return first

    def _add(self, ask: DeviceAsk) -> Shortage | None:
        if ask.admin:
            return None
        suitable = [device for device in self._usable if self._matches(ask, device)]
        free = [device.id for device in suitable if device.id not in self._taken or device.divisible]
        if any(device.divisible for device in suitable):
            return None  # how many claims share one is not ours to judge
        count = len(suitable) if ask.count is None else ask.count
        owners, wants = dict(self._owner), list(self._wants)
        short = not count or len(free) < count or not all(self._take(free) for _ in range(count))
        if not short:
            return None
        self._owner, self._wants = owners, wants
        left = sum(device not in owners for device in free)
        return Shortage(ask.device_class, ask.count or 0, left, len(suitable))

    def _take(self, wanted: list[DeviceId]) -> bool:
        self._wants.append(wanted)
        return self._assign(len(self._wants) - 1, set())

    def _assign(self, number: int, tried: set[DeviceId]) -> bool:
        for device in self._wants[number]:
            if device in tried:
                continue
            tried.add(device)
            holder = self._owner.get(device)
            if holder is None or self._assign(holder, tried):
                self._owner[device] = number
                return True
        return False


class Offer:
    """What is to be had on a node: the devices that can be used there, but for the `taken` ones.

    `promised` are the devices counted for claims that pods on nodes are waiting for. Nothing of it changes once it is
    made, so that an answer holds for all claims that ask for the same.
    """

    def __init__(self, usable: list[Device]) -> None:
        self._usable = usable
        self._ids = {device.id for device in usable}
        self.taken: set[DeviceId] = set()
        self.promised: dict[str, set[DeviceId]] = {}
        self._answers: dict[tuple[DeviceRequest, ...], Shortage | None] = {}

    def promise(self, claim: str, requests: Iterable[DeviceRequest], usable: list[Device], matches: Matches) -> None:
        """Count devices, out of those that can be used on its pod's node, for a claim that has none yet."""
        choice = Choice(usable, self.taken, matches)
        for request in requests:
            choice.add(request)
        self.promised[claim] = choice.chosen
        self.taken |= choice.chosen

    def reaches(self, claim: str) -> bool:
        """Whether what is counted for a claim elsewhere can be used here."""
        promised = self.promised.get(claim)
        return bool(promised) and self._ids.issuperset(promised or ())

    def answer(self, claims: list[ResourceClaimSpec], matches: Matches) -> Shortage | None:
        """What is lacking for these claims; None when they can all be met."""
        asked = tuple(request for claim in claims for request in claim.requests)
        if asked not in self._answers:
            choice = Choice(self._usable, self.taken, matches)
            shortages = (shortage for request in asked if (shortage := choice.add(request)) is not None)
            self._answers[asked] = next(shortages, None)
        return self._answers[asked]
