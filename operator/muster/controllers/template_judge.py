"""Asks the API server itself whether it takes a pod template, before anything is made for it.

A dry run of a PodTemplate with strict field validation answers what a pod would be answered later: misspelt fields,
names that can't be, values out of range, in the server's own words. Nothing is stored. Equal templates are asked about
once, so a thousand jobs of one make cost one request.

Only a clear word on the template counts. A server that may not be asked, or an admission webhook that can't take part
in a dry run, says nothing about it: the template then passes, and the pods' own creation has the last word.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from muster.api.errors import FieldProblem
from muster.kube.client import ApiClient
from muster.kube.errors import Forbidden, Invalid
from muster.kube.resource import PODTEMPLATES
from muster.ray.validation.templates import WrittenTemplate

logger = logging.getLogger(__name__)

_MOST_REMEMBERED: Final = 2000
_STRICT: Final = "strict decoding error: "
_UNKNOWN_FIELD: Final = re.compile(r'unknown field "template\.?([^"]+)"')

Verdict = tuple[FieldProblem, ...]
"""Problems with paths relative to the template; empty: the server takes it."""


class TemplateJudge:
    """Remembers the verdicts on the templates that it was last asked about."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._verdicts: dict[bytes, Verdict] = {}

    async def problems(self, namespace: str, templates: Iterable[WrittenTemplate]) -> list[FieldProblem]:
        """What the API server would refuse, under the templates' own paths. Raises ApiError when it gives no answer."""
        return [
            FieldProblem(f"{each.path}.{problem.path}" if problem.path else each.path, problem.message)
            for each in templates
            for problem in await self._judge(namespace, each.template)
        ]

    async def _judge(self, namespace: str, template: Mapping[str, Any]) -> Verdict:
        encoded = msgspec.json.encode(template, order="deterministic")
        key = hashlib.sha256(encoded).digest()
        verdict = self._verdicts.pop(key, None)
        if verdict is None:
            verdict = await self._ask(namespace, template)
        # Put last again: the ones that nobody asks about any more are forgotten first.
        self._verdicts[key] = verdict
        while len(self._verdicts) > _MOST_REMEMBERED:
            self._verdicts.pop(next(iter(self._verdicts)))
        return verdict

    async def _ask(self, namespace: str, template: Mapping[str, Any]) -> Verdict:
        body = {
            "apiVersion": PODTEMPLATES.api_version,
            "kind": PODTEMPLATES.kind,
            "metadata": {"generateName": "muster-dry-run-", "namespace": namespace},
            "template": template,
        }
        try:
            await self._client.create(PODTEMPLATES, namespace, body, dry_run=True, strict=True)
        except Invalid as refusal:
            return read_refusal(refusal)
        except Forbidden as refusal:
            logger.warning("pod templates in %s can't be tried out: %s", namespace, refusal.message)
        return ()


def read_refusal(refusal: Invalid) -> Verdict:
    """What the server's answer says about the template; nothing when it is about something else."""
    if _STRICT in refusal.message:
        return tuple(
            FieldProblem(found, "is not a field that the API server knows; check its spelling and its place")
            for found in dict.fromkeys(_UNKNOWN_FIELD.findall(refusal.message))
        )
    problems = []
    for cause in refusal.details.get("causes") or ():
        field = str(cause.get("field", "")) if isinstance(cause, Mapping) else ""
        if field == "template" or field.startswith(("template.", "template[")):
            problems.append(FieldProblem(field.removeprefix("template").lstrip("."), str(cause.get("message", ""))))
    return tuple(problems)
