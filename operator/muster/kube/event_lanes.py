"""The bounded queue of events to be posted, in which nobody's burst costs another anything.

Each reason in each namespace has a lane of its own. Lanes take turns, so that a thousand pods that were created do not
hold up one warning; and when all is full the longest lane loses its latest, so that who makes the noise bears the loss.
Nothing of it costs more with more lanes: a burst may have one for each of a thousand namespaces.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import datetime
from typing import Final

from muster.kube.news import News

_MOST: Final = 5000
"""Some megabytes: a storm of bindings may hold up the events of a few thousand gangs."""

Lane = tuple[str, str, str]
Size = tuple[int, bool]
"""The length of a lane, and whether its news is Normal: the largest loses first."""
Entry = tuple[News, datetime]
"""The news, and when it was heard."""


class EventLanes:
    """What waits to be posted: at most `most` events."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lanes: OrderedDict[Lane, deque[Entry]] = OrderedDict()
        self._sizes: defaultdict[Size, dict[Lane, None]] = defaultdict(dict)
        """The lanes of each size, those that came to it last at the end."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, entry: Entry) -> News | None:
        """Queue it; return what was dropped for that, which may be this very one."""
        lane = _lane(entry[0])
        waiting = self._lanes.setdefault(lane, deque())
        self._unsize(lane)
        waiting.append(entry)
        self._size(lane)
        self._length += 1
        return self._drop() if self._length > self._most else None

    def take(self) -> Entry:
        """The first of the lane whose turn it is; there must be one."""
        lane = next(iter(self._lanes))
        self._lanes.move_to_end(lane)
        return self._shorten(lane, deque.popleft)

    def _drop(self) -> News:
        """Among lanes of one length a Normal one loses, of these the one that has grown last."""
        longest = next(reversed(self._sizes[max(self._sizes)]))
        dropped, _ = self._shorten(longest, deque.pop)
        return dropped

    def _shorten(self, lane: Lane, take: Callable[[deque[Entry]], Entry]) -> Entry:
        self._unsize(lane)
        entry = take(self._lanes[lane])
        self._length -= 1
        if self._lanes[lane]:
            self._size(lane)
        else:
            del self._lanes[lane]
        return entry

    def _size(self, lane: Lane) -> None:
        self._sizes[self._size_of(lane)][lane] = None

    def _unsize(self, lane: Lane) -> None:
        size = self._size_of(lane)
        if size[0]:
            del self._sizes[size][lane]
            if not self._sizes[size]:
                del self._sizes[size]

    def _size_of(self, lane: Lane) -> Size:
        return len(self._lanes[lane]), lane[1] == "Normal"


def _lane(news: News) -> Lane:
    return news.regarding.namespace or "", news.type, news.reason
