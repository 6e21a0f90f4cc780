"""Kubernetes Events: said once per change, in the background, and never in anybody's way.

`event` only puts the news on a bounded queue; `run` posts it. The same news about the same object is not said again,
so a reconciler may call `event` at every pass. News that can't be posted is logged and dropped: an Event informs
people, nothing depends on it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from muster.kube.client import ApiClient
from muster.kube.errors import ApiError, ServerError, TooManyRequests, Unreachable
from muster.kube.resource import EVENTS
from muster.kube.transport import Sleep

_log = logging.getLogger(__name__)

EventType = Literal["Normal", "Warning"]

_QUEUED_AT_MOST: Final = 1000
_REMEMBERED_OBJECTS: Final = 10_000
_REMEMBERED_PER_OBJECT: Final = 20
_LONGEST_NOTE: Final = 1024
_LONGEST_NAME: Final = 200
_TRIES: Final = 5
_LONGEST_PAUSE: Final = 10.0


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str | None
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class _News:
    regarding: ObjectReference
    type: EventType
    reason: str
    message: str
    action: str
    change: str


class EventRecorder:
    """Posts Events of events.k8s.io/v1 in the name of `component`.

    `clock` gives the wall-clock time, `sleep` and `suffix` (a random name part) are injected too.
    """

    def __init__(
        self,
        client: ApiClient,
        component: str,
        *,
        instance: str | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Sleep = asyncio.sleep,
        suffix: Callable[[], str] = lambda: f"{random.getrandbits(64):016x}",
    ) -> None:
        self._client = client
        self._component = component
        self._instance = (instance or f"{component}-{socket.gethostname()}")[:128]
        self._clock = clock
        self._sleep = sleep
        self._suffix = suffix
        self._queue: deque[tuple[_News, datetime]] = deque()
        self._said: OrderedDict[str, dict[str, _News]] = OrderedDict()
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
    ) -> None:
        """Say what happened to an object, unless the last thing said of it with this reason and action is the same.

        `reason` and `action` are UpperCamelCase words; a `message` longer than 1024 bytes is cut. Where the same news
        can be true a second time (suspended, resumed, suspended again), `change` tells the times apart: the object's
        generation, a transition time.
        """
        news = _News(regarding, type, reason, message, action, change)
        if not self._is_new(news):
            return
        if len(self._queue) >= _QUEUED_AT_MOST:
            self._dropped += 1
            return
        self._queue.append((news, self._clock()))
        self._idle.clear()
        self._wake.set()

    def _is_new(self, news: _News) -> bool:
        """Remember the latest news of each topic (reason and action) of each object, within bounds."""
        said = self._said.setdefault(news.regarding.uid or repr(news.regarding), {})
        self._said.move_to_end(news.regarding.uid or repr(news.regarding))
        topic = f"{news.reason}/{news.action}"
        if said.get(topic) == news:
            return False
        said.pop(topic, None)
        said[topic] = news
        if len(said) > _REMEMBERED_PER_OBJECT:
            del said[next(iter(said))]
        if len(self._said) > _REMEMBERED_OBJECTS:
            self._said.popitem(last=False)
        return True

    async def run(self) -> None:
        """Post what is queued, until cancelled."""
        while True:
            while self._queue:
                await self._post(*self._queue[0])
                self._queue.popleft()
            if self._dropped:
                _log.warning("%d events were dropped: the queue was full", self._dropped)
                self._dropped = 0
            self._idle.set()
            self._wake.clear()
            await self._wake.wait()

    async def flush(self, deadline: float) -> bool:
        """Wait until all is posted, at most `deadline` seconds; says whether it is. `run` must be running."""
        try:
            async with asyncio.timeout(deadline):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def _post(self, news: _News, at: datetime) -> None:
        body = self._body(news, at)
        for attempt in range(_TRIES):
            try:
                await self._client.create(EVENTS, body["metadata"]["namespace"], body)
            except (Unreachable, ServerError, TooManyRequests) as error:
                # The name is the same at every try, so an event that did land is not doubled.
                wait = getattr(error, "retry_after", None) or 0.5 * 2**attempt
                await self._sleep(min(wait, _LONGEST_PAUSE))
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    _log.warning("event %s on %s %s: %s", news.reason, news.regarding.kind, news.regarding.name, error)
                return
            else:
                return
        _log.warning("event %s on %s %s was not posted", news.reason, news.regarding.kind, news.regarding.name)

    def _body(self, news: _News, at: datetime) -> dict[str, Any]:
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
                "name": f"{about.name[:_LONGEST_NAME].rstrip('.-')}.{self._suffix()}",
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
