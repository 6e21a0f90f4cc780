"""What queues that share something are guaranteed of it, and whose guarantees leave another one too little.

Guarantees are kept even where they add up to more than there is: nodes may be away for a while, and a guarantee that
ended then would be none. The other queues get nothing meanwhile, so their gangs are told whom to ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from muster.scheduler.queue import QueueInfo
from muster.scheduler.resources import Resources, format_amount, total

_NAMED: Final = 3


class Guarantees:
    """The guarantees of `queues`, which share `whole`: the cluster, or what the queue above them may use."""

    def __init__(self, queues: Iterable[QueueInfo] = (), whole: Resources | None = None) -> None:
        self._whole = whole if whole is not None else Resources()
        nothing = Resources()
        self._each: Mapping[str, Resources] = {
            queue.name: queue.guarantee for queue in queues if queue.guarantee != nothing
        }
        self.left = self._whole.exceeded(total(self._each.values()))
        """What nobody is guaranteed."""

    def bind(self, queue: QueueInfo, limit: Resources, dimension: str) -> bool:
        """Whether the queue's limit is what all guarantees leave it, not its own cap or a smaller share."""
        return limit.get(dimension) >= self.left.get(dimension) + queue.guarantee.get(dimension)

    def beside(self, queue: QueueInfo, dimension: str) -> int:
        """How much of it the others are guaranteed."""
        return sum(each.get(dimension) for name, each in self._each.items() if name != queue.name)

    def cause(self, queue: QueueInfo, dimension: str) -> str:
        """`because queue a is guaranteed cpu 9 of 8`, the largest first; empty where no other is guaranteed any."""
        found = {name: each.get(dimension) for name, each in self._each.items() if name != queue.name}
        names = sorted((name for name, amount in found.items() if amount > 0), key=lambda name: (-found[name], name))
        if not names:
            return ""
        amounts = (
            f"{format_amount(dimension, sum(found.values()))} of {format_amount(dimension, self._whole.get(dimension))}"
        )
        return f"because {_in_words(names)} guaranteed {dimension} {amounts}"


def _in_words(names: list[str]) -> str:
    """`queues a, b, c and 2 others are`."""
    if len(names) == 1:
        return f"queue {names[0]} is"
    over = len(names) - _NAMED
    shown = names if over <= 0 else [*names[:_NAMED], f"{over} other{'s' if over > 1 else ''}"]
    return f"queues {', '.join(shown[:-1])} and {shown[-1]} are"
