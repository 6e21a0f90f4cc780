"""Whether a RayCluster or RayJob may be stored: the rules of the controllers, asked before there is anything to undo.

An update is judged by what it changes. A fault that the stored object has already does not hold up a change of
something else (the Ray autoscaler patches replicas, a finalizer is taken away): it is told as a warning. An object that
is being deleted, and one that another controller looks after, is none of our business.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from muster.api.errors import FieldProblem, MalformedResource
from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.controllers.primary import being_deleted, managed_elsewhere
from muster.controllers.template_judge import TemplateJudge
from muster.kube.errors import ApiError
from muster.kube.resource import RAYCLUSTERS, RAYJOBS, Resource
from muster.ray.pod_options import PodOptions
from muster.ray.validation import ray_cluster_cautions, ray_job_cautions, validate_ray_cluster, validate_ray_job
from muster.ray.validation.made import Made, made_of_ray_cluster, made_of_ray_job
from muster.ray.validation.templates import ray_cluster_templates, ray_job_templates

M = TypeVar("M", RayCluster, RayJob)
_Rules = Callable[[dict[str, Any]], tuple[list[FieldProblem], Sequence[Made]]]
"""What is wrong with an object by the rules, and what else the API server is to be asked about."""
_Cautions = Callable[[dict[str, Any]], list[FieldProblem]]
_DEFAULTS: Final = PodOptions()

TEMPLATES_SECONDS: Final = 3.0
"""How long pod templates are tried out; the API server waits for an answer for five seconds."""

_INDEX: Final = re.compile(r"\[\d+\]")
_JUDGED_METADATA: Final = ("name", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class Judgement:
    """`refusals` keep the object from being stored; `warnings` are told to whoever stores it."""

    refusals: tuple[FieldProblem, ...] = ()
    warnings: tuple[str, ...] = ()


class Judge:
    """Judges objects as the controllers would. `templates` asks the API server about what is made of them."""

    def __init__(self, templates: TemplateJudge, options: PodOptions = _DEFAULTS) -> None:
        self._templates = templates
        made_of_cluster, made_of_job = (
            partial(made_of_ray_cluster, options=options),
            partial(made_of_ray_job, options=options),
        )
        self._rules: Mapping[Resource, _Rules] = {
            RAYCLUSTERS: _rules(RayCluster, validate_ray_cluster, made_of_cluster, ray_cluster_templates),
            RAYJOBS: _rules(RayJob, validate_ray_job, made_of_job, ray_job_templates),
        }
        self._cautions: Mapping[Resource, _Cautions] = {
            RAYCLUSTERS: _cautions(RayCluster, ray_cluster_cautions),
            RAYJOBS: _cautions(RayJob, ray_job_cautions),
        }

    async def judge(self, resource: Resource, new: dict[str, Any], old: dict[str, Any] | None = None) -> Judgement:
        """Judge `new`, which replaces `old` (None: it is created)."""
        until = asyncio.get_running_loop().time() + TEMPLATES_SECONDS
        if being_deleted(new) or managed_elsewhere(new) or (old is not None and _same(new, old)):
            return Judgement()
        judgement = await self._judged(resource, new, old, until)
        if judgement.refusals:
            return judgement
        return replace(judgement, warnings=judgement.warnings + tuple(map(str, self._cautions[resource](new))))

    async def _judged(
        self, resource: Resource, new: dict[str, Any], old: dict[str, Any] | None, until: float
    ) -> Judgement:
        problems, unanswered = await self._problems(resource, new, until)
        if not problems or old is None:
            return Judgement(tuple(problems), unanswered)
        # All that was wrong before, templates beside rules: whoever mends one fault is not refused for another.
        before, unknown = await self._problems(resource, old, until, all_of_them=True)
        if unknown:  # a template that is refused now may have been refused before
            problems, unanswered = self._rules[resource](new)[0], unknown
        added, stays = _compared(problems, before)
        return Judgement(tuple(added), unanswered + tuple(f"{each} (it was so before this change)" for each in stays))

    async def _problems(
        self, resource: Resource, raw: dict[str, Any], until: float, *, all_of_them: bool = False
    ) -> tuple[list[FieldProblem], tuple[str, ...]]:
        """What is wrong with the object, and what could not be found out `until` then (seconds of the event loop).

        Where a rule is broken the templates are tried out only if `all_of_them` are asked for.
        """
        problems, templates = self._rules[resource](raw)
        if problems and not all_of_them:
            return problems, ()
        try:
            async with asyncio.timeout_at(until):
                return problems + await self._templates.problems(raw["metadata"]["namespace"], templates), ()
        except TimeoutError:
            return problems, (
                f"not all of the {len(templates)} pod templates could be tried out in time; they are later",
            )
        except ApiError as error:
            return problems, (f"the pod templates could not be tried out now; they are later: {error}",)


def _rules(
    model: type[M],
    validate: Callable[[M], list[FieldProblem]],
    made: Callable[[M], list[Made]],
    written: Callable[[M], Sequence[Made]],
) -> _Rules:
    def apply(raw: dict[str, Any]) -> tuple[list[FieldProblem], Sequence[Made]]:
        try:
            typed = model.parse(raw)
        except MalformedResource as malformed:
            return malformed.problems, []
        problems = validate(typed)
        # Of what breaks a rule nothing may be possible to make.
        return problems, written(typed) if problems else made(typed)

    return apply


def _cautions(model: type[M], cautions: Callable[[M], list[FieldProblem]]) -> _Cautions:
    def apply(raw: dict[str, Any]) -> list[FieldProblem]:
        try:
            return cautions(model.parse(raw))
        except MalformedResource:  # as it was before the change
            return []

    return apply


Problems = list[FieldProblem]


def _compared(problems: Problems, before: Problems) -> tuple[Problems, Problems]:
    """What the change adds, and what was there already, perhaps at another place in a list."""
    known = Counter(map(_wherever, before))
    added: Problems = []
    stays: Problems = []
    for problem in problems:
        fault = _wherever(problem)
        (stays if known[fault] > 0 else added).append(problem)
        known[fault] -= 1
    return added, stays


def _wherever(problem: FieldProblem) -> tuple[str, str]:
    return _INDEX.sub("[]", problem.path), _INDEX.sub("[]", problem.message)


def _same(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether a change touches nothing that a rule reads."""
    before, after = old["metadata"], new["metadata"]
    return new.get("spec") == old.get("spec") and all(before.get(key) == after.get(key) for key in _JUDGED_METADATA)
