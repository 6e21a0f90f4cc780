"""What has been told of each object, so that nothing is told twice while it stays as it is.

News is new when it differs from the last on its topic. Two facts that stand side by side belong to two topics; should
they share one all the same, each look would find the other's words and tell its own again. So words that were heard
before are told again a few times only: they cost a token each, and an object gets tokens slowly.

All of it is bounded: objects, and topics and words of each. The ones that were not asked about for longest go first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

from muster.kube.news import News

_OBJECTS: Final = 10_000
_PER_OBJECT: Final = 64
_TOKENS: Final = 10
_SECONDS_A_TOKEN: Final = 300.0

K = TypeVar("K")
V = TypeVar("V")


class _Told:
    """What was told of one object. Words are kept as hashes: a message may have a thousand bytes."""

    def __init__(self) -> None:
        self.last: OrderedDict[tuple[str, str, str], int] = OrderedDict()
        self.heard: OrderedDict[int, None] = OrderedDict()
        self.tokens = float(_TOKENS)
        self.counted_at: datetime | None = None

    def take_token(self, now: datetime) -> bool:
        """Whether words that were heard before may be told again."""
        if self.counted_at is not None:
            gained = (now - self.counted_at).total_seconds() / _SECONDS_A_TOKEN
            self.tokens = min(float(_TOKENS), self.tokens + max(0.0, gained))
        self.counted_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class EventMemory:
    """Remembers what was told; `clock` gives the time."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._objects: OrderedDict[str, _Told] = OrderedDict()

    def __len__(self) -> int:
        return len(self._objects)

    def learn(self, news: News) -> bool:
        """Whether this has to be told; from now on it counts as told."""
        told, words = self._objects.get(_key(news)) or _Told(), hash(news)
        _put(self._objects, _key(news), told, _OBJECTS)
        known, heard = told.last.get(news.topic) == words, words in told.heard
        _put(told.last, news.topic, words, _PER_OBJECT)
        _put(told.heard, words, None, _PER_OBJECT)
        return not known and (not heard or told.take_token(self._clock()))

    def forget(self, news: News) -> None:
        """It was not told after all: say so when it comes again."""
        told = self._objects.get(_key(news))
        if told is None:
            return
        told.heard.pop(hash(news), None)
        if told.last.get(news.topic) == hash(news):
            del told.last[news.topic]


def _key(news: News) -> str:
    return news.regarding.uid or repr(news.regarding)


def _put(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Keep it as the latest, and drop what is oldest."""
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
