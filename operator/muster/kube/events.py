"""Kubernetes Events: said once per change, in the background, and never in anybody's way.

`event` only puts the news on a bounded queue; `run` posts it. The same news about the same object is not said again,
so a reconciler may call `event` at every pass. News that can't be posted is logged and dropped: an Event informs
people, nothing depends on it. What was dropped counts as not said, so that a fact that still stands at the next pass is
told then.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from muster.kube.background_turns import BackgroundTurns
from muster.kube.client import ApiClient
from muster.kube.errors import (
    AlreadyExists,
    ApiError,
    NamespaceTerminating,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from muster.kube.event_lanes import EventLanes
from muster.kube.event_memory import EventMemory
from muster.kube.news import EventType, News, ObjectReference
from muster.kube.resource import EVENTS
from muster.kube.transport import Sleep

__all__ = ["EventRecorder", "EventType", "ObjectReference"]

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 8
"""Events being posted at the same time: enough for a large gang, and few beside what else the client does."""
_LONGEST_NOTE: Final = 1024
_LONGEST_NAME: Final = 200
_TRIES: Final = 5
_LONGEST_PAUSE: Final = 10.0


class EventRecorder:
    """Posts Events of events.k8s.io/v1 in the name of `component`.

    `clock` gives the wall-clock time, `sleep` and `suffix` (the random end of a name) are injected too. `turns` tells
    when an event may be sent.
    """

    def __init__(
        self,
        client: ApiClient,
        component: str,
        *,
        instance: str | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
        suffix: Callable[[], str] = lambda: f"{random.getrandbits(32):08x}",
        turns: BackgroundTurns | None = None,
    ) -> None:
        self._client = client
        self._component = component
        self._instance = (instance or f"{component}-{socket.gethostname()}")[:128]
        self._clock = clock
        self._sleep = sleep
        self._suffix = suffix
        self._turns = turns or BackgroundTurns()
        self._queue = EventLanes()
        self._memory = EventMemory(clock)
        self._under_way = 0
        self._dropped = 0
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def event(
        self,
        regarding: ObjectReference,
        type: EventType,
        reason: str,
        message: str,
        action: str,
        *,
        change: str = "",
        subject: str = "",
    ) -> None:
        """Say what happened to an object, unless the last thing said of it on the same topic is the same.

        The topic is `reason`, `action` (UpperCamelCase words both) and `subject`. A `message` longer than 1024 bytes is
        cut. Where several such facts can stand side by side (two services whose names are taken), `subject` tells them
        apart; where the same news can be true a second time (suspended, resumed, suspended again), `change` tells the
        times apart: the object's generation, a transition time, the UID of what was made.
        """
        news = News(regarding, type, reason, message, action, change, subject)
        if not self._memory.learn(news):
            return
        dropped = self._queue.put((news, self._clock()))
        if dropped is not None:
            self._memory.forget(dropped)
            self._dropped += 1
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        """Post what is queued, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_AT_ONCE):
                tasks.create_task(self._post_what_comes())

    async def _post_what_comes(self) -> None:
        while True:
            while not self._queue:
                self._rest()
                self._wake.clear()
                await self._wake.wait()
            news, at = self._queue.take()
            settled = False
            self._under_way += 1
            try:
                await self._turns.turn()
                settled = await self._post(news, at)
            finally:
                self._under_way -= 1
                if not settled:
                    self._memory.forget(news)

    def _rest(self) -> None:
        if self._dropped:
            _log.warning("%d events were dropped: the queue was full", self._dropped)
            self._dropped = 0
        if not self._under_way:
            self._idle.set()

    async def flush(self, deadline: float) -> bool:
        """Wait until all is posted, at most `deadline` seconds; says whether it is. `run` must be running."""
        try:
            async with asyncio.timeout(deadline):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def _post(self, news: News, at: datetime) -> bool:
        """Whether the server has answered, be it with a refusal."""
        body = self._body(news, at)
        for attempt in range(_TRIES):
            try:
                await self._client.create(EVENTS, body["metadata"]["namespace"], body)
            except (Unreachable, ServerError, TooManyRequests) as error:
                # The name is the same at every try, so an event that did land is not doubled.
                wait = getattr(error, "retry_after", None) or 0.5 * 2**attempt
                await self._sleep(min(wait, _LONGEST_PAUSE))
            except (AlreadyExists, NamespaceTerminating):
                return True
            except ApiError as error:
                _log.warning("event %s on %s %s: %s", news.reason, news.regarding.kind, news.regarding.name, error)
                return True
            else:
                return True
        _log.warning("event %s on %s %s was not posted", news.reason, news.regarding.kind, news.regarding.name)
        return False

    def _body(self, news: News, at: datetime) -> dict[str, Any]:
        about = news.regarding
        reference = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        }
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{about.name[:_LONGEST_NAME].rstrip('.-')}.{_sortable(at)}{self._suffix()}",
                # Events on cluster-scoped objects live in the default namespace.
                "namespace": about.namespace or "default",
            },
            "eventTime": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "type": news.type,
            "reason": news.reason[:128],
            "action": news.action[:128],
            "note": news.message.encode()[:_LONGEST_NOTE].decode(errors="ignore"),
            "regarding": {key: value for key, value in reference.items() if value},
        }


def _sortable(at: datetime) -> str:
    """The moment in microseconds, as hexadecimal digits that sort like it.

    `kubectl describe` sorts by `lastTimestamp`, which an event of this API may not have; what is equal stays in the
    order of names, in which the API server lists.
    """
    return f"{int(at.timestamp() * 1_000_000):014x}"
