"""The Ray Jobs API, over HTTP, as the dashboard of a Ray head serves it.

What a call promises: an answer of the right shape, or one of the errors below. `submit` is idempotent: calling it again
with the same submission id, or after an answer that got lost on the way, never starts a second job. Nothing retries in
here: how long to go on belongs to the caller, who has the clock.

No custom resource models are imported: the submitter's small pod runs this too.
"""

from __future__ import annotations

import asyncio
import functools
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx
from httpx_ws import AsyncWebSocketSession, HTTPXWSException, WebSocketDisconnect, aconnect_ws
from wsproto.utilities import ProtocolError

from muster.ray.job_info import JobInfo, Submission, UnexpectedDocument, storable

_DUPLICATE_ID: Final = "use a different submission_id"
_NORMAL_CLOSURE: Final = 1000
_SHOWN_CHARACTERS: Final = 2000
_SHOWN_PATH: Final = 300
_LONGEST_SEGMENT: Final = 8000
"""Characters of an id in a URL: a dashboard's server takes a first line of 8190 bytes."""
_PING_SECONDS: Final = 20.0
_QUEUED_FRAMES: Final = 8
_LARGEST_ANSWER: Final = 2 << 20
"""Bytes. A dashboard runs what its users please: neither a small pod nor the operator reads more of an answer."""
_TRICKLE: Final = 3
"""An answer has to be complete within so many times the time-out of each step."""
_FAILURES: Final = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpx.StreamError,
    httpx.CookieConflict,
    OSError,
    ValueError,
)
"""All that comes of a request that can't be made, sent or answered; httpx has no one word for it, and for what can't be
written in a URL, a header or JSON Python's own is raised."""


_LOST: Final = (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError)


class RayApiError(Exception):
    """Something is wrong with a call to the dashboard. The text says what, for people."""


class DashboardUnreachable(RayApiError):  # noqa: N818 - says what is wrong
    """No answer, or a broken one. What was asked for may have happened all the same."""


class ConnectionLost(DashboardUnreachable):
    """The connection ended before there was an answer. One that had been kept from an earlier call may just be old."""


class DashboardError(RayApiError):
    """The dashboard answered, but not with what was asked for. `status` is the HTTP status, `message` its text."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the dashboard answered {status}: {message}")
        self.status = status
        self.message = message


class JobNotFound(DashboardError):  # noqa: N818
    """Ray has no job of this id."""


class SubmissionRefused(DashboardError):  # noqa: N818
    """The submission itself is at fault: sending it again would not help."""


class RayJobsClient:
    """A client of one dashboard; an async context manager.

    `base_url` may have a path, such as the API server's service proxy. `timeout` is in seconds, for each step
    of a call (connecting, writing, the next piece of the answer); `verify` is the TLS context of an https dashboard
    (without one, only plain http works, and no CA certificates are loaded). `auth` is for whoever is on the way.
    With `behind_api_server` an answer may be the API server's own, which says nothing about Ray: no job is unknown
    because its head is gone.
    Raises ValueError for a `base_url` that is none.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        timeout: float = 10.0,
        headers: Mapping[str, str] | None = None,
        verify: ssl.SSLContext | None = None,
        auth: httpx.Auth | None = None,
        behind_api_server: bool = False,
    ) -> None:
        self._behind_api_server = behind_api_server
        own = {"x-ray-authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._http = httpx.AsyncClient(
            base_url=_url(base_url),
            # As bytes: a value that can't be sent is for the calls to tell, which know not to quote it.
            headers={name.encode(): _bytes(value) for name, value in {**(headers or {}), **own}.items()},
            timeout=timeout,
            verify=verify or _without_tls(),
            trust_env=False,
            auth=auth,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def version(self) -> dict[str, Any]:
        """What the dashboard says about itself: Ray's version, commit and session."""
        document = _json(await self._call("GET", "/api/version"))
        if not isinstance(document, dict):
            raise DashboardError(200, f"not a version: {document!r}")
        return document

    async def health(self) -> None:
        """Return when the head's control service answers healthy; raise DashboardUnreachable or DashboardError."""
        answer = await self._call("GET", "/api/gcs_healthz")
        if "success" not in answer.text:
            raise DashboardError(answer.status, _shown(answer.text))

    async def submit(self, submission: Submission) -> str:
        """Start the job unless Ray already has one of its id; return the id.

        That Ray has it is believed only in Ray's own words: a login page on the way answers 200, too. Raises
        SubmissionRefused when the submission is at fault. After DashboardUnreachable or DashboardError the job is not
        known to exist, and calling again is safe.
        """
        _job_path(submission.submission_id)  # a job that can't be asked about later is not begun
        try:
            await self._post_submission(submission)
        except (DashboardUnreachable, DashboardError) as error:
            if isinstance(error, SubmissionRefused) and _DUPLICATE_ID not in error.message:
                raise
            await self._must_exist(submission.submission_id, error)
        return submission.submission_id

    async def _post_submission(self, submission: Submission) -> None:
        try:
            answer = await self._call("POST", "/api/jobs/", submission.to_document())
        except DashboardError as error:
            if error.status == httpx.codes.BAD_REQUEST:
                raise SubmissionRefused(error.status, error.message) from None
            raise
        document = _json(answer)
        # Ray has called the id by one name, then by both; the other may also be the number of the job's driver.
        if not isinstance(document, dict) or submission.submission_id not in _ids(document):
            raise DashboardError(answer.status, f"not what Ray says of a submission: {_shown(answer.text)}")

    async def _must_exist(self, submission_id: str, cause: RayApiError) -> None:
        try:
            await self.get(submission_id)
        except JobNotFound:
            raise cause from None

    async def get(self, submission_id: str) -> JobInfo:
        """The job of this id, which may also be the number of its driver. Raises JobNotFound."""
        answer = await self._call("GET", _job_path(submission_id))
        document = _json(answer)
        try:
            info = JobInfo.from_document(document)
        except UnexpectedDocument as error:
            raise DashboardError(answer.status, str(error)) from None
        told = [one for one in _ids(document) if one]
        if told and submission_id not in told:  # Ray 1 tells no id
            others = _beginning(", ".join(storable(str(one)) for one in told))
            raise DashboardError(answer.status, f"of a job of another id than {submission_id}: {others}")
        return info

    async def stop(self, submission_id: str) -> bool:
        """Ask Ray to stop the job; False when it had ended already. Raises JobNotFound."""
        document = _json(await self._call("POST", _job_path(submission_id, "/stop")))
        return isinstance(document, dict) and document.get("stopped") is True

    async def logs(self, submission_id: str) -> str:
        """All that the job has printed so far. Raises JobNotFound, and DashboardError for more than 2 MiB."""
        answer = await self._call("GET", _job_path(submission_id, "/logs"))
        document = _json(answer)
        if not isinstance(document, dict) or not isinstance(document.get("logs"), str):
            raise DashboardError(answer.status, "no logs in the answer")
        return str(document["logs"])

    async def tail(self, submission_id: str, receive: Callable[[str], None]) -> None:
        """Hand over the job's output, from its very beginning and as it is printed, piece by piece.

        Returns when the dashboard closes the stream in order. That is no verdict about the job, which may still run.
        Raises DashboardUnreachable when the stream breaks.
        """
        path = _job_path(submission_id, "/logs/tail")
        with _stream_errors():
            url = self._http.base_url.join(self._http.base_url.path.rstrip("/") + path)
            socket: AsyncWebSocketSession
            async with aconnect_ws(
                str(url),
                self._http,
                queue_size=_QUEUED_FRAMES,
                keepalive_ping_interval_seconds=_PING_SECONDS,
                keepalive_ping_timeout_seconds=_PING_SECONDS,
            ) as socket:
                try:
                    while True:
                        receive(await socket.receive_text())
                except WebSocketDisconnect as closed:
                    if closed.code != _NORMAL_CLOSURE:
                        raise

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> _Answer:
        try:
            async with asyncio.timeout(_TRICKLE * self._timeout):
                answer = await self._read(method, path, body)
        except TimeoutError as error:
            raise DashboardUnreachable(f"{_call_in_words(method, path)}: the answer only trickles in") from error
        except _FAILURES as error:
            kind = ConnectionLost if isinstance(error, _LOST) else DashboardUnreachable
            raise kind(f"{_call_in_words(method, path)}: {_reason(error)}") from error
        if self._behind_api_server and (said := _said_by_api_server(answer)) is not None:
            answers = f"the API server answers {answer.status}: {said}"
            raise DashboardUnreachable(f"{_call_in_words(method, path)}: {answers}")
        if answer.status == httpx.codes.NOT_FOUND:
            raise JobNotFound(answer.status, _shown(answer.text))
        if not httpx.codes.is_success(answer.status):
            raise DashboardError(answer.status, _shown(answer.text))
        return answer

    async def _read(self, method: str, path: str, body: Mapping[str, Any] | None) -> _Answer:
        async with self._http.stream(method, path, json=body, headers={"accept-encoding": "identity"}) as answer:
            text = bytearray()
            async for piece in answer.aiter_raw():
                text += piece
                if len(text) > _LARGEST_ANSWER:
                    raise DashboardError(answer.status_code, f"longer than {_LARGEST_ANSWER >> 20} MiB")
            return _Answer(answer.status_code, text.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer in full: its HTTP status and its body."""

    status: int
    text: str


@functools.cache
def _without_tls() -> ssl.SSLContext:
    """A context for clients that talk plain HTTP only: it trusts nobody. One for all, since there is a client for each
    question, and to make a context takes longer than to make a client.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _url(text: str) -> httpx.URL:
    try:
        return httpx.URL(text)
    except httpx.InvalidURL as error:
        raise ValueError(f"{text!r} is no address: {error}") from None


def _job_path(submission_id: str, rest: str = "") -> str:
    """Raises DashboardUnreachable for an id that would lead to another place, or that no URL can have."""
    try:
        segment = quote(submission_id, safe="")
    except UnicodeEncodeError:
        segment = ""
    if segment in ("", ".", "..") or len(segment) > _LONGEST_SEGMENT:
        raise DashboardUnreachable(
            f"no URL can have job id {_beginning(repr(submission_id))}: give the job another one"
        )
    return f"/api/jobs/{segment}{rest}"


def _bytes(value: str) -> bytes:
    """A header's value; one from an environment variable may have bytes that are no text."""
    return value.encode("utf-8", "surrogateescape")


def _call_in_words(method: str, path: str) -> str:
    return f"{method} {_beginning(path)}"


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN_PATH else f"{text[:_SHOWN_PATH]}…"


def _json(answer: _Answer) -> Any:
    try:
        return json.loads(answer.text)
    except (ValueError, RecursionError):
        raise DashboardError(answer.status, f"not JSON: {_shown(answer.text) or 'nothing'}") from None


def _ids(document: Mapping[str, Any]) -> tuple[Any, Any]:
    return document.get("submission_id"), document.get("job_id")


def _said_by_api_server(answer: _Answer) -> str | None:
    """The message of a failure that the API server itself reports; None for an answer of the dashboard."""
    if httpx.codes.is_success(answer.status):
        return None
    try:
        document = json.loads(answer.text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or (document.get("kind"), document.get("apiVersion")) != ("Status", "v1"):
        return None
    return _shown(str(document.get("message")))


def _shown(text: str) -> str:
    """The end of a long text: Ray answers with stack traces, whose last line says what is wrong."""
    text = text.strip()
    return text if len(text) <= _SHOWN_CHARACTERS else "…" + text[-_SHOWN_CHARACTERS:]


def _reason(error: BaseException) -> str:
    if isinstance(error, UnicodeError):
        return "the request can't be sent: its body or a header, such as that with the token, can't be encoded"
    if isinstance(error, httpx.LocalProtocolError):  # it quotes the header, which may be the token
        return "the request can't be sent: a header, such as that with the token, has characters that none may have"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@contextmanager
def _stream_errors() -> Iterator[None]:
    """Turn every way in which a web socket can break into DashboardUnreachable."""
    broken = (HTTPXWSException, ProtocolError, *_FAILURES)
    try:
        yield
    except broken as error:
        raise DashboardUnreachable(f"log stream: {_reason(error)}") from error
    except BaseExceptionGroup as group:
        # The socket's own background tasks report in groups; anything foreign in one goes on as it is.
        _, foreign = group.split(broken)
        if foreign is not None:
            raise
        raise DashboardUnreachable(f"log stream: {_reason(_first_leaf(group))}") from group


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
