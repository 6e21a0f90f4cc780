"""The bounded queue of events to be posted, in which nobody's burst costs another anything.

Each reason in each namespace has a lane of its own. Lanes take turns, so that a thousand pods that were created do not
hold up one warning; and when all is full the longest lane loses its latest, so that who makes the noise bears the loss.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from datetime import datetime
from typing import Final

from muster.kube.news import News

_MOST: Final = 1000

Lane = tuple[str, str, str]
Entry = tuple[News, datetime]
"""The news, and when it was heard."""


class EventLanes:
    """What waits to be posted: at most `most` events."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lanes: OrderedDict[Lane, deque[Entry]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, entry: Entry) -> News | None:
        """Queue it; return what was dropped for that, which may be this very one."""
        self._lanes.setdefault(_lane(entry[0]), deque()).append(entry)
        self._length += 1
        return self._drop() if self._length > self._most else None

    def take(self) -> Entry:
        """The first of the lane whose turn it is; there must be one."""
        lane = next(iter(self._lanes))
        entry = self._lanes[lane].popleft()
        self._lanes.move_to_end(lane)
        self._shortened(lane)
        return entry

    def _drop(self) -> News:
        """Among lanes of one length a Normal one loses."""
        longest = max(self._lanes, key=lambda lane: (len(self._lanes[lane]), lane[1] == "Normal"))
        dropped, _ = self._lanes[longest].pop()
        self._shortened(longest)
        return dropped

    def _shortened(self, lane: Lane) -> None:
        self._length -= 1
        if not self._lanes[lane]:
            del self._lanes[lane]


def _lane(news: News) -> Lane:
    return news.regarding.namespace or "", news.type, news.reason
