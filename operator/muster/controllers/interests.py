"""Who waits for an object that is not its own: a queue to open, the last pods of a cluster that is gone.

Owner references tell whom the change of a child concerns; for anything else a reconciler says here what it waits for.
Interests last until the same key is looked at again, so each look renews the ones that it still has. They are held in
memory: the first look after a restart brings them back.
"""

from __future__ import annotations

from collections import defaultdict

from muster.kube.resource import Resource

Target = tuple[str, str]


class Interests:
    """Which keys wait for a change of which objects."""

    def __init__(self) -> None:
        self._waiting: dict[Target, set[str]] = defaultdict(set)
        self._targets: dict[str, set[Target]] = defaultdict(set)

    def add(self, key: str, resource: Resource, target: str) -> None:
        """`key` wants a look when the object `target` ("namespace/name", or "name") changes."""
        wanted = (resource.plural, target)
        self._waiting[wanted].add(key)
        self._targets[key].add(wanted)

    def clear(self, key: str) -> None:
        """`key` is being looked at: it says anew what it waits for."""
        for target in self._targets.pop(key, set()):
            self._waiting[target].discard(key)
            if not self._waiting[target]:
                del self._waiting[target]

    def in_object(self, resource: Resource, target: str) -> frozenset[str]:
        """The keys that wait for a change of this object."""
        return frozenset(self._waiting.get((resource.plural, target), ()))
