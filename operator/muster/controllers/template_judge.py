"""Asks the API server itself whether it takes a pod template, before anything is made for it.

A dry run of a PodTemplate with strict field validation answers what a pod would be answered later: misspelt fields,
wrong types, names that can't be, values out of range, in the server's own words. Nothing is stored. Equal templates of
a namespace are asked about once, so a thousand jobs of one make cost one request.

Only a clear word on the template counts. A server that may not be asked, or an admission webhook that can't take part
in a dry run, says nothing about it: the template then passes, and the pods' own creation has the last word. Whatever
may be answered otherwise another time (all but yes) is asked again after a minute.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from muster.api.errors import FieldProblem
from muster.controllers.clock import Clock
from muster.kube.client import ApiClient
from muster.kube.errors import Forbidden, Invalid
from muster.kube.resource import PODTEMPLATES
from muster.ray.validation.templates import WrittenTemplate

logger = logging.getLogger(__name__)

_MOST_REMEMBERED: Final = 2000
_AT_ONCE: Final = 16
"""Templates of one object that are tried out at the same time; the client has room for fifty requests."""
_NO_GOOD_SECONDS: Final = 60.0
"""How long an answer other than yes is remembered."""
_UNREADABLE: Final = " cannot be handled as a PodTemplate: "
_UNKNOWN_FIELD: Final = re.compile(r'unknown field "template\.?([^"]+)"')
_WRONG_TYPE: Final = re.compile(
    r"json: cannot unmarshal (?P<given>.+) into Go struct field \w+\.template(?P<path>[^ ]*) of type (?P<wanted>\S+)"
)
_GO_TYPES: Final = {"string": "a string", "bool": "true or false", "int32": "a whole number", "int64": "a whole number"}

_Key = tuple[str, bytes]
"""The namespace, and what stands for the template."""

Verdict = tuple[FieldProblem, ...]
"""Problems with paths relative to the template; empty: the server takes it."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """A verdict, and until when it is believed (monotonic seconds)."""

    verdict: Verdict
    until: float


class TemplateJudge:
    """Remembers the answers about the templates that it was last asked about."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._answers: dict[_Key, _Answer] = {}
        self._asking: dict[_Key, asyncio.Future[_Answer]] = {}

    async def problems(self, namespace: str, templates: Iterable[WrittenTemplate]) -> list[FieldProblem]:
        """What the API server would refuse, under the templates' own paths. Raises ApiError when it gives no answer."""
        asked = list(templates)
        found: list[FieldProblem] = []
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            verdicts = await asyncio.gather(*(self._judge(namespace, each.template) for each in some))
            for each, verdict in zip(some, verdicts, strict=True):
                found += [FieldProblem(each.place(problem.path), problem.message) for problem in verdict]
        return found

    async def _judge(self, namespace: str, template: Mapping[str, Any]) -> Verdict:
        encoded = msgspec.json.encode(template, order="deterministic")
        # What one namespace's quotas, policies and webhooks say does not hold for another.
        key = (namespace, hashlib.sha256(encoded).digest())
        answer = self._answers.pop(key, None)
        if answer is None or answer.until <= self._clock.monotonic():
            answer = await self._ask_once(key, namespace, template)
        # Put last again: the ones that nobody asks about any more are forgotten first.
        self._answers[key] = answer
        while len(self._answers) > _MOST_REMEMBERED:
            self._answers.pop(next(iter(self._answers)))
        return answer.verdict

    async def _ask_once(self, key: _Key, namespace: str, template: Mapping[str, Any]) -> _Answer:
        """The server's answer; whoever comes while the question is under way waits for the same answer."""
        asking = self._asking.get(key)
        if asking is None:
            asking = self._asking[key] = asyncio.ensure_future(self._ask(namespace, template))
            asking.add_done_callback(partial(self._answered, key))
        # Whoever asked first may be cancelled: the others still want to know.
        return await asyncio.shield(asking)

    def _answered(self, key: _Key, asking: asyncio.Future[_Answer]) -> None:
        del self._asking[key]
        if not asking.cancelled():
            asking.exception()  # nobody may be left who waits for it

    async def _ask(self, namespace: str, template: Mapping[str, Any]) -> _Answer:
        body = {
            "apiVersion": PODTEMPLATES.api_version,
            "kind": PODTEMPLATES.kind,
            "metadata": {"generateName": "muster-dry-run-", "namespace": namespace},
            "template": template,
        }
        verdict: Verdict = ()
        try:
            await self._client.create(PODTEMPLATES, namespace, body, dry_run=True, strict=True)
        except Invalid as refusal:
            verdict = read_refusal(refusal)
        except Forbidden as refusal:
            logger.warning("pod templates in %s can't be tried out: %s", namespace, refusal.message)
        else:
            return _Answer(verdict, math.inf)
        return _Answer(verdict, self._clock.monotonic() + _NO_GOOD_SECONDS)


def read_refusal(refusal: Invalid) -> Verdict:
    """What the server's answer says about the template; nothing when it is about something else."""
    _, unreadable, why = refusal.message.partition(_UNREADABLE)
    if unreadable:
        return _unreadable(why)
    problems = []
    for cause in refusal.details.get("causes") or ():
        field = str(cause.get("field", "")) if isinstance(cause, Mapping) else ""
        if field == "template" or field.startswith(("template.", "template[")):
            problems.append(FieldProblem(field.removeprefix("template").lstrip("."), str(cause.get("message", ""))))
    return tuple(problems)


def _unreadable(why: str) -> Verdict:
    """The problems with a template that the server can't even read, the first of each kind only."""
    if unknown := dict.fromkeys(_UNKNOWN_FIELD.findall(why)):
        text = "is not a field that the API server knows; check its spelling and its place"
        return tuple(FieldProblem(field, text) for field in unknown)
    wrong = _WRONG_TYPE.search(why)
    if wrong is None:
        return (FieldProblem("", f"can't be read by the API server: {why}"),)
    wanted = _GO_TYPES.get(wrong["wanted"], wrong["wanted"])
    return (FieldProblem(wrong["path"].lstrip("."), f"must be {wanted}, not {wrong['given']}"),)
