"""What counts as a new fault of an update."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import pytest

from muster.admission import judgement as judging
from muster.admission.judgement import Judge
from muster.api.errors import FieldProblem
from muster.controllers.template_judge import TemplateJudge
from muster.kube.resource import RAYCLUSTERS
from muster.ray.validation.templates import WrittenTemplate
from tests.integration.ray_manifests import ray_cluster, worker_group


class NoObjection:
    """An API server that takes every template."""

    async def problems(self, *_: Any) -> list[FieldProblem]:
        return []


class ObjectsToAll:
    """An API server that takes no template."""

    async def problems(self, _: str, templates: Iterable[WrittenTemplate]) -> list[FieldProblem]:
        return [FieldProblem(each.path, "is not to its liking") for each in templates]


class AnswersTooLate:
    """An API server that tries out no template in time, or (`first`) only those of the first question."""

    def __init__(self, first: int = 0) -> None:
        self._left = first

    async def problems(self, namespace: str, templates: Iterable[WrittenTemplate]) -> list[FieldProblem]:
        if self._left:
            self._left -= 1
            return await ObjectsToAll().problems(namespace, templates)
        never: asyncio.Future[list[FieldProblem]] = asyncio.get_running_loop().create_future()
        return await never


@pytest.fixture
def judge() -> Judge:
    return Judge(cast("TemplateJudge", NoObjection()))


def cluster(*groups: dict[str, Any]) -> dict[str, Any]:
    made = ray_cluster("old", *groups)
    made["metadata"]["namespace"] = "ns"
    return made


BAD = worker_group("b", numOfHosts=-1)


async def test_an_old_fault_that_has_moved_in_its_list_is_an_old_fault(judge: Judge) -> None:
    judgement = await judge.judge(RAYCLUSTERS, cluster(BAD), cluster(worker_group("a"), BAD))
    assert judgement.refusals == ()
    (warning,) = judgement.warnings
    assert warning.startswith("spec.workerGroupSpecs[0].numOfHosts: ")


async def test_one_more_of_the_same_fault_is_a_new_one(judge: Judge) -> None:
    another = worker_group("c", numOfHosts=-1)
    judgement = await judge.judge(RAYCLUSTERS, cluster(BAD, another), cluster(BAD))
    assert [refusal.path for refusal in judgement.refusals] == ["spec.workerGroupSpecs[1].numOfHosts"]
    assert len(judgement.warnings) == 1


async def test_a_fault_that_was_mended_does_not_stand_for_another(judge: Judge) -> None:
    worse = worker_group("b", numOfHosts=-2)
    judgement = await judge.judge(RAYCLUSTERS, cluster(worse), cluster(BAD))
    assert len(judgement.refusals) == 1


async def test_one_fault_of_several_can_be_mended_alone() -> None:
    judge = Judge(cast("TemplateJudge", ObjectsToAll()))
    judgement = await judge.judge(RAYCLUSTERS, cluster(worker_group("b")), cluster(BAD))
    assert judgement.refusals == ()
    assert len(judgement.warnings) == 2


@pytest.mark.parametrize("old", [None, cluster(worker_group("a", replicas=3))], ids=["created", "changed"])
async def test_templates_that_take_too_long_are_left_to_the_controllers(
    old: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "TEMPLATES_SECONDS", 0.01)
    judgement = await Judge(cast("TemplateJudge", AnswersTooLate())).judge(RAYCLUSTERS, cluster(worker_group("a")), old)
    assert judgement.refusals == ()
    (warning,) = judgement.warnings
    assert "not all of the 2 pod templates" in warning


async def test_a_template_that_may_have_been_refused_before_is_no_new_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "TEMPLATES_SECONDS", 0.01)
    judge = Judge(cast("TemplateJudge", AnswersTooLate(first=1)))
    judgement = await judge.judge(RAYCLUSTERS, cluster(worker_group("a")), cluster(worker_group("a", replicas=3)))
    assert judgement.refusals == ()
    assert len(judgement.warnings) == 1


@pytest.mark.parametrize("old", [None, cluster(worker_group("a"))], ids=["created", "changed"])
async def test_what_is_taken_but_hardly_meant_is_a_warning(judge: Judge, old: dict[str, Any] | None) -> None:
    judgement = await judge.judge(RAYCLUSTERS, cluster(worker_group("a", -1)), old)
    assert judgement.refusals == ()
    assert judgement.warnings == ("spec.workerGroupSpecs[0].replicas: is -1; minReplicas, 0, counts instead",)


async def test_one_that_is_refused_is_told_why_and_no_more(judge: Judge) -> None:
    judgement = await judge.judge(RAYCLUSTERS, cluster(worker_group("a", -1), BAD))
    assert [refusal.path for refusal in judgement.refusals] == ["spec.workerGroupSpecs[1].numOfHosts"]
    assert judgement.warnings == ()


async def test_an_object_that_was_malformed_before_is_judged_all_the_same(judge: Judge) -> None:
    malformed = cluster(worker_group("a", replicas=cast("int", "two")))
    labelled = {**malformed, "metadata": {**malformed["metadata"], "labels": {"a": "b"}}}
    judgement = await judge.judge(RAYCLUSTERS, labelled, malformed)
    assert judgement.refusals == ()
    assert len(judgement.warnings) == 1
