"""Which volumes are promised to which claims, before the API server shows it.

A volume that several nodes reach may be chosen for pods on any of them, so what one pod is about to get has to be known
wherever another one is placed. A promise is made when a pod with an unbound claim gets a place, decided or not, and is
gone when the last such pod has lost its place. Once its binding was sent (`ask`) it stays also when that fails, for the
volume may be kept for the claim already: until the claim has a volume, somebody else has got this one, or no pod names
the claim any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Promise:
    """A volume for a claim. `nodes` are the places (by uid) of the pods that use it, `asked` says that it was asked."""

    volume: str
    nodes: dict[str, str] = field(default_factory=dict)
    asked: bool = False


class VolumePromises:
    """Promises by claim (`namespace/name`)."""

    def __init__(self) -> None:
        self._by_claim: dict[str, Promise] = {}
        self._by_volume: dict[str, str] = {}
        self._pods: dict[str, int] = {}
        """How many pods name a claim."""

    def of(self, claim: str) -> Promise | None:
        """What the claim has been promised."""
        return self._by_claim.get(claim)

    def claimant(self, volume: str) -> str | None:
        """The claim to which the volume is promised."""
        return self._by_volume.get(volume)

    def items(self) -> list[tuple[str, Promise]]:
        """All promises, by claim."""
        return sorted(self._by_claim.items())

    def make(self, claim: str, volume: str) -> Promise:
        """Promise the volume, and no other any more."""
        self.drop(claim)
        promise = self._by_claim[claim] = Promise(volume)
        self._by_volume[volume] = claim
        return promise

    def ask(self, claim: str) -> None:
        """The promise, if there is one, is about to be carried out."""
        promise = self._by_claim.get(claim)
        if promise is not None:
            promise.asked = True

    def leave(self, claim: str, uid: str) -> None:
        """The pod has lost its place."""
        promise = self._by_claim.get(claim)
        if promise is not None and promise.nodes.pop(uid, None) is not None and not (promise.nodes or promise.asked):
            self.drop(claim)

    def drop(self, claim: str) -> None:
        """The claim has been promised nothing any more."""
        promise = self._by_claim.pop(claim, None)
        if promise is not None:
            del self._by_volume[promise.volume]

    def drop_volume(self, volume: str) -> None:
        """The volume can't be had by whoever was promised it."""
        claim = self._by_volume.get(volume)
        if claim is not None:
            self.drop(claim)

    def count(self, claims: tuple[str, ...], sign: int) -> bool:
        """A pod with these claims came (1) or went (-1); true when a promise has ended by that."""
        ended = False
        for claim in claims:
            pods = self._pods[claim] = self._pods.get(claim, 0) + sign
            if pods:
                continue
            del self._pods[claim]
            promise = self._by_claim.get(claim)
            if promise is not None and not promise.nodes:
                self.drop(claim)
                ended = True
        return ended
