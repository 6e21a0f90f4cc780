"""What can go wrong at the API server, as types.

The server answers a refused request with a Status object; its code decides the type here, so callers catch
`Conflict` or `NotFound` and never compare numbers. `Unreachable` is the one without an answer: the request may or may
not have been carried out, so whoever sent a write must read before it sends another.
"""

# The names are the server's own reasons, without an Error suffix.
# ruff: noqa: N818

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding JSON raises: for what is no JSON or of another type, no UTF-8, or nested too deep."""


LONGEST_RETRY_AFTER: Final = 60.0
"""Seconds; nothing waits longer on the word of whatever stands between here and the server."""


class ApiError(Exception):
    """A request that did not succeed.

    `status` is the HTTP status (0 without an answer), `reason` the server's machine-readable word (`NotFound`,
    `AlreadyExists`, ...), `message` its sentence, `details` the Status object's details (causes with fields, ...).
    """

    def __init__(self, status: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{status} {reason}: {message}" if status else f"{reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.details: dict[str, Any] = dict(details or {})


class NotFound(ApiError):
    """404: the object, or its namespace, or its kind, is not there."""


class NotServed(NotFound):
    """404 for a kind that the server does not have, or not in this version; the answer names no object."""


class ImpossibleName(NotFound, ValueError):
    """No object can have this name, and in a path it would lead to another one: so the server was not asked."""

    def __init__(self, name: str) -> None:
        super().__init__(0, "NotFound", f"{name!a} is not the name of an object")


class Conflict(ApiError):
    """409: a precondition (resourceVersion, UID) does not hold any more."""


class AlreadyExists(Conflict):
    """409: an object of that name is there already."""


class Expired(ApiError):
    """410: the resourceVersion or the continue token is too old; list again."""


class Invalid(ApiError):
    """400 or 422: the server will never take this body; the message and the details' causes name the fields."""


class Forbidden(ApiError):
    """401 or 403: these credentials may not do this."""


class NamespaceTerminating(Forbidden):
    """403: nothing can be created in a namespace that is being deleted, and what is in it goes too."""


class TooManyRequests(ApiError):
    """429: come back after `retry_after` seconds (at most a minute; None: the server named no time)."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(status, reason, message, details)
        self.retry_after = retry_after


class ServerError(ApiError):
    """5xx: the server failed; a write may have landed all the same."""


class Unreachable(ApiError):
    """No answer: connection refused or lost, or the time ran out. A write may have landed."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Unreachable", message)


class TimedOut(Unreachable):
    """The server took the request and did not answer it in time: it may be at work on it still."""


class Undecodable(ApiError):
    """The server answered with an object of another shape than asked for; the message carries the path."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Undecodable", message)


_NOT_SERVED: Final = " (the API server does not serve this kind of object: is its CRD installed?)"

_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}


class _Status(msgspec.Struct):
    reason: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None
    code: int | None = None


def error_from_answer(status: int, payload: bytes, retry_after: str | None = None) -> ApiError:
    """The typed error for an HTTP answer: its status, its body (a Status object or any text) and Retry-After header."""
    word = _status_object(payload)
    reason = word.reason or f"HTTP{status}"
    message = word.message or payload[:500].decode(errors="replace").strip() or reason
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExists(status, reason, message, word.details)
    # A patch that names another UID is answered as an attempt to change it; as a precondition it did not hold.
    if status == 422 and _has_cause(word.details, "field", "metadata.uid"):
        return Conflict(status, reason, message, word.details)
    if status == 403 and _has_cause(word.details, "reason", "NamespaceTerminating"):
        return NamespaceTerminating(status, reason, message, word.details)
    if status == 404 and not (word.details or {}).get("name"):
        return NotServed(status, reason, message + _NOT_SERVED, word.details)
    if status == 429:
        return TooManyRequests(status, reason, message, word.details, _seconds(retry_after, word.details))
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    return kind(status, reason, message, word.details)


def error_from_status(status: bytes | msgspec.Raw) -> ApiError:
    """The typed error for a Status object that came inside a watch stream (an ERROR event)."""
    payload = bytes(status)
    return error_from_answer(_status_object(payload).code or 500, payload)


def _has_cause(details: Mapping[str, Any] | None, key: str, value: str) -> bool:
    causes = (details or {}).get("causes")
    return isinstance(causes, list) and any(isinstance(cause, Mapping) and cause.get(key) == value for cause in causes)


def _status_object(payload: bytes) -> _Status:
    try:
        return msgspec.json.decode(payload, type=_Status)
    except UNREADABLE:
        return _Status()


def _seconds(header: str | None, details: Mapping[str, Any] | None) -> float | None:
    for candidate in (header, (details or {}).get("retryAfterSeconds")):
        try:
            return min(max(0.0, float(candidate)), LONGEST_RETRY_AFTER)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
    return None
