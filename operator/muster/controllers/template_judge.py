"""Asks the API server itself whether it takes a pod template, or a service, before anything is made for it.

A dry run of a PodTemplate, or of the Job that is to have it, with strict field validation answers what would be
answered later: misspelt fields, wrong types, names that can't be, values out of range, in the server's own words.
Nothing is stored. Equal templates of a namespace are asked about once, so a thousand jobs of one make cost one request.
What Muster makes is asked about (see `muster.ray.validation.made`); what the user wrote only to tell what is wrong in
the words for that.

Only a clear word on the template counts. A server that may not be asked, or an admission webhook that can't take part
in a dry run, says nothing about it: the template then passes, and the pods' own creation has the last word. Whatever
may be answered otherwise another time (all but yes) is asked again after a minute.

A server that does not answer in time may be at work on the template still. It is asked about that one again only after
a pause that grows each time, from ten seconds to an hour, so that one object can't keep it busy. An amount that would
take it hours to read is not shown to it at all, whoever asks.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import re
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from muster.api.errors import FieldProblem
from muster.controllers.clock import Clock
from muster.kube.client import ApiClient
from muster.kube.ending_namespaces import EndingNamespaces
from muster.kube.errors import ApiError, Forbidden, Invalid, TimedOut
from muster.kube.resource import JOBS, PODTEMPLATES, SERVICES, Resource
from muster.ray.validation import costly_amounts
from muster.ray.validation.made import Made, MadeJob, MadeService

logger = logging.getLogger(__name__)

_MOST_REMEMBERED: Final = 2000
_AT_ONCE: Final = 16
"""Templates of one object that are tried out at the same time; the client has room for fifty requests."""
_NO_GOOD_SECONDS: Final = 60.0
"""How long an answer other than yes is remembered."""
_FIRST_PAUSE: Final = 10.0
_LONGEST_PAUSE: Final = 3600.0
"""Seconds without a question about a template after the server was late with its answer: the first, twice as long each
time, the longest."""
_GATEWAY_TIMEOUT: Final = 504
LARGEST_POD: Final = (1 << 20) + (496 << 10)
"""Bytes. An etcd takes 1.5 MiB; the API server adds who has written which field."""
_TOO_LARGE: Final = (
    "makes a pod of {} bytes with what Muster adds, more than the {} that can be stored; put large values of env into "
    "a ConfigMap (the variables of a worker's Ray container are in its init container too)"
)
_OF_METADATA: Final = ("labels", "annotations")
"""What the API server says of a template's metadata lacks that word."""
_UNREADABLE: Final = " cannot be handled as a {}: "
_UNKNOWN_FIELD: Final = re.compile(r'unknown field "([^"]+)"')
_WRONG_TYPE: Final = re.compile(
    r"json: cannot unmarshal (?P<given>.+) into Go struct field \w+(?P<path>[^ ]*) of type (?P<wanted>\S+)"
)
_GO_TYPES: Final = {"string": "a string", "bool": "true or false", "int32": "a whole number", "int64": "a whole number"}

_Key = tuple[str, bytes]
"""The namespace, and what stands for the template."""

Verdict = tuple[FieldProblem, ...]
"""Problems with paths relative to the template; empty: the server takes it."""


class NotJudgedInTime(ApiError):  # noqa: N818 - as its siblings
    """504: the server did not say in time whether it takes a template; the message names the template's path."""

    def __init__(self, path: str, why: str) -> None:
        message = f"{path}: the API server did not say in time whether it takes this template, and is asked again"
        super().__init__(_GATEWAY_TIMEOUT, "Timeout", f"{message} later: {why}")


@dataclass(frozen=True, slots=True)
class _Answer:
    """A verdict, and until when it is believed (monotonic seconds).

    `late` says why there is none, where the server did not answer in time, and `pause` how long it is left alone.
    """

    verdict: Verdict
    until: float
    late: str | None = None
    pause: float = 0.0


class TemplateJudge:
    """Remembers the answers about the templates that it was last asked about."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._answers: dict[_Key, _Answer] = {}
        self._asking: dict[_Key, asyncio.Future[_Answer]] = {}
        self._ending = EndingNamespaces(logger)

    async def problems(self, namespace: str, templates: Iterable[Made]) -> list[FieldProblem]:
        """What the API server would refuse, under the templates' own paths. Raises ApiError when it gives no answer."""
        asked = list(templates)
        found: list[FieldProblem] = []
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            for problems in await _all_of(self._problems_of(namespace, each) for each in some):
                found += problems
        return found

    async def _problems_of(self, namespace: str, each: Made) -> list[FieldProblem]:
        told = _costly(each)
        if not told and (verdict := await self._judge(namespace, each)):
            for part in each.parts:
                told += await self._problems_of(namespace, part)
            told = told or [each.told(problem) for problem in verdict]
        return list(dict.fromkeys(told))

    async def _judge(self, namespace: str, each: Made) -> Verdict:
        encoded = msgspec.json.encode(each.key, order="deterministic")
        # What one namespace's quotas, policies and webhooks say does not hold for another.
        key = (namespace, hashlib.sha256(encoded).digest())
        answer = self._answers.get(key)
        if answer is None or answer.until <= self._clock.monotonic():
            answer = await self._ask_once(key, namespace, each)
        self._remember(key, answer)
        if answer.late is not None:
            raise NotJudgedInTime(each.path, answer.late)
        return answer.verdict

    def _remember(self, key: _Key, answer: _Answer) -> None:
        """Put it last: the ones that nobody asks about any more are forgotten first."""
        self._answers.pop(key, None)
        self._answers[key] = answer
        while len(self._answers) > _MOST_REMEMBERED:
            self._answers.pop(next(iter(self._answers)))

    async def _ask_once(self, key: _Key, namespace: str, each: Made) -> _Answer:
        """The server's answer; whoever comes while the question is under way waits for the same answer."""
        asking = self._asking.get(key)
        if asking is None:
            before = self._answers.get(key)
            pause = min(max(2 * before.pause, _FIRST_PAUSE), _LONGEST_PAUSE) if before else _FIRST_PAUSE
            asking = self._asking[key] = asyncio.ensure_future(self._ask(namespace, each, pause))
            asking.add_done_callback(partial(self._answered, key))
        # Whoever asked first may be cancelled: the others still want to know.
        return await asyncio.shield(asking)

    def _answered(self, key: _Key, asking: asyncio.Future[_Answer]) -> None:
        del self._asking[key]
        # Nobody may be left who waits for it: the next one who asks finds it here.
        if not asking.cancelled() and asking.exception() is None:
            self._remember(key, asking.result())

    async def _ask(self, namespace: str, each: Made, pause: float) -> _Answer:
        """The server's answer; `pause` is how long it is to be left alone if none comes in time. Raises ApiError."""
        size = len(msgspec.json.encode(each.body))
        if size > LARGEST_POD:
            return _Answer((FieldProblem("", _TOO_LARGE.format(size, LARGEST_POD)),), math.inf)
        resource, within = _asked_as(each)
        body: dict[str, Any] = {within: each.body} if resource is PODTEMPLATES else dict(each.body)
        body |= {"apiVersion": resource.api_version, "kind": resource.kind}
        body["metadata"] = {**body.get("metadata", {}), "generateName": "muster-dry-run-", "namespace": namespace}
        verdict: Verdict = ()
        try:
            await self._client.create(resource, namespace, body, dry_run=True, strict=True)
        except Invalid as refusal:
            verdict = read_refusal(refusal, resource.kind, within)
        except Forbidden as refusal:
            if not self._ending.account_for(namespace, refusal):
                logger.warning("%s in %s can't be tried out: %s", resource.plural, namespace, refusal.message)
        except ApiError as error:
            if not isinstance(error, TimedOut) and error.status != _GATEWAY_TIMEOUT:
                raise
            return _Answer(verdict, self._clock.monotonic() + pause, error.message, pause)
        else:
            self._ending.serves(namespace)
            return _Answer(verdict, math.inf)
        return _Answer(verdict, self._clock.monotonic() + _NO_GOOD_SECONDS)


def _asked_as(each: Made) -> tuple[Resource, str]:
    """The kind of object that the server is asked about, and where in it the template is."""
    if isinstance(each, MadeService):
        return SERVICES, ""
    return (JOBS, "spec.template") if isinstance(each, MadeJob) else (PODTEMPLATES, "template")


def _costly(each: Made) -> list[FieldProblem]:
    """Of what the user wrote; what Muster adds is not."""
    written = () if isinstance(each, MadeService) else each.parts or (each,)
    return [part.told(problem) for part in written for problem in costly_amounts.in_template(part.body, "")]


async def _all_of(judging: Iterable[Awaitable[list[FieldProblem]]]) -> list[list[FieldProblem]]:
    """All answers, in order. Raises the first error in that order, so that the same fault has the same words again."""
    answers: list[list[FieldProblem]] = []
    for answer in await asyncio.gather(*judging, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer
        answers.append(answer)
    return answers


def read_refusal(refusal: Invalid, kind: str = PODTEMPLATES.kind, within: str = "template") -> Verdict:
    """What the server's answer says about what was tried out, `within` the object; nothing when it is about another."""
    _, unreadable, why = refusal.message.partition(_UNREADABLE.format(kind))
    if unreadable:
        return _unreadable(why, within)
    problems = []
    for cause in refusal.details.get("causes") or ():
        field = str(cause.get("field", "")) if isinstance(cause, Mapping) else ""
        if field and (field == within or not within or field.startswith((f"{within}.", f"{within}["))):
            place = field.removeprefix(within).lstrip(".")
            if within and place.startswith(_OF_METADATA):
                place = f"metadata.{place}"
            problems.append(FieldProblem(place, str(cause.get("message", ""))))
    return tuple(problems)


def _unreadable(why: str, within: str) -> Verdict:
    """The problems with what the server can't even read, the first of each kind only."""
    if unknown := dict.fromkeys(_UNKNOWN_FIELD.findall(why)):
        text = "is not a field that the API server knows; check its spelling and its place"
        return tuple(FieldProblem(field.removeprefix(within).lstrip("."), text) for field in unknown)
    wrong = _WRONG_TYPE.search(why)
    if wrong is None:
        return (FieldProblem("", f"can't be read by the API server: {why}"),)
    wanted = _GO_TYPES.get(wrong["wanted"], wrong["wanted"])
    path = wrong["path"].removeprefix(f".{within}" if within else "").lstrip(".")
    return (FieldProblem(path, f"must be {wanted}, not {wrong['given']}"),)
