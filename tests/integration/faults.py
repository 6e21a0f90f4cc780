"""The faults that the proxy knows, and the requests that they can strike."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aiohttp import web

_PASSED_HEADERS = ("Content-Type", "Accept", "User-Agent")


@dataclass(frozen=True)
class ProxiedRequest:
    """A request as it came: `path` without the query, `body` parsed (None without one)."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    raw_path: str
    content: bytes
    headers: Mapping[str, str]

    @classmethod
    async def of(cls, incoming: web.Request) -> ProxiedRequest:
        """Read a request."""
        content = await incoming.read()
        return cls(
            incoming.method,
            incoming.path,
            dict(incoming.query),
            json.loads(content) if content else None,
            incoming.raw_path,
            content,
            {key: incoming.headers[key] for key in _PASSED_HEADERS if key in incoming.headers},
        )

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.method != "GET"

    @property
    def is_watch(self) -> bool:
        """Whether it is a watch."""
        return self.method == "GET" and self.query.get("watch") == "true"

    @property
    def is_list(self) -> bool:
        """Whether it is a page of a list (as our client asks for it, with a limit)."""
        return self.method == "GET" and not self.is_watch and "limit" in self.query


When = Callable[[ProxiedRequest], bool]


def anything(_: ProxiedRequest) -> bool:
    """Every request."""
    return True


def matching(method: str | None = None, path: str = "", *, watch: bool | None = None) -> When:
    """Requests of this method whose path the regular expression finds; `watch` wants (or does not want) watches."""
    pattern = re.compile(path)

    def when(request: ProxiedRequest) -> bool:
        return (
            (method is None or request.method == method)
            and pattern.search(request.path) is not None
            and (watch is None or request.is_watch == watch)
        )

    return when


def _status(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details or {},
    }


@dataclass(frozen=True)
class Answer:
    """Answer with an error; the API server never sees the request."""

    status: int
    reason: str = "Injected"
    message: str = "injected by the fault proxy"
    retry_after: int | None = None

    def response(self) -> web.Response:
        """The answer."""
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after is not None else {}
        return web.json_response(_status(self.status, self.reason, self.message), status=self.status, headers=headers)


@dataclass(frozen=True)
class Replay:
    """Answer with an earlier answer (see FaultProxy.snapshot): a stale read."""

    status: int
    content: bytes

    def response(self) -> web.Response:
        """The answer."""
        return web.Response(status=self.status, body=self.content, content_type="application/json")


@dataclass(frozen=True)
class WatchError:
    """Answer a watch with one ERROR event and end it: 410 inside the stream, say."""

    status: int = 410
    reason: str = "Expired"
    message: str = "too old resource version"

    def response(self) -> web.Response:
        """The answer."""
        event = {"type": "ERROR", "object": _status(self.status, self.reason, self.message)}
        return web.Response(body=json.dumps(event).encode() + b"\n", content_type="application/json")


@dataclass(frozen=True)
class Drop:
    """Break the connection; the API server never sees the request."""


@dataclass(frozen=True)
class LoseAnswer:
    """Pass the request on, then break the connection: a write has landed and nobody is told."""


@dataclass(frozen=True)
class StallAnswer:
    """Pass the request on and keep the answer back until `release` is set: the client's time-out after it landed."""

    release: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class SpoilAnswer:
    """Pass the request on, then answer with an error of one's own: a write has landed, the answer denies it."""

    answer: Answer = field(default_factory=lambda: Answer(500, "InternalError"))


@dataclass(frozen=True)
class Delay:
    """Pass the request on after so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Hold:
    """Pass the request on once `release` is set, or answer it with `then`; `reached` says that it has come."""

    then: Answer | WatchError | None = None
    release: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class CutWatch:
    """Break a watch when it is about to pass on more than `after` events."""

    after: int = 0


@dataclass(frozen=True)
class FreezeWatch:
    """Let `after` events through a watch, then nothing more, and keep it open."""

    after: int = 0


Fault = (
    Answer | Replay | WatchError | Drop | LoseAnswer | StallAnswer | SpoilAnswer | Delay | Hold | CutWatch | FreezeWatch
)


class Phase(Enum):
    """When a callback sees a write: before it is passed on, or after it has landed and before its answer goes back."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True)
class Write:
    """A write that passes: its number among those that the callback sees, from 1."""

    number: int
    phase: Phase
    request: ProxiedRequest


class KillHere(Exception):  # noqa: N818
    """Raised by a callback: break the connection at this point."""
