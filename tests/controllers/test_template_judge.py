"""How the API server's answer to a dry run is read; that it is asked, and answers so, is tested on a real one."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

import pytest

from muster.api.errors import FieldProblem
from muster.controllers.template_judge import NotJudgedInTime, TemplateJudge, read_refusal
from muster.kube.errors import (
    ApiError,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    ServerError,
    TimedOut,
    Unreachable,
)
from muster.ray.validation.templates import WrittenTemplate
from tests.controllers.fake_clock import FakeClock, settle


def refusal(message: str, *causes: Any) -> Invalid:
    return Invalid(422, "Invalid", message, {"causes": list(causes)} if causes else None)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            refusal("", {"field": "template.spec.containers[0].name", "message": "Invalid value"}),
            [("spec.containers[0].name", "Invalid value")],
        ),
        (refusal("", {"field": "template", "message": "Required value"}), [("", "Required value")]),
        (refusal("", {"field": "metadata.name", "message": "too long"}), []),
        (refusal("", {"field": "templates.x", "message": "another"}), []),
        (refusal("an admission webhook does not support dry run"), []),
        (refusal("", "no cause", {"message": "about nothing"}), []),
    ],
    ids=["a field", "the template", "not the template", "a like name", "no cause at all", "malformed causes"],
)
def test_only_a_word_on_the_template_counts(answer: Invalid, told: list[tuple[str, str]]) -> None:
    assert [(problem.path, problem.message) for problem in read_refusal(answer)] == told


@pytest.mark.parametrize(
    ("why", "path", "message"),
    [
        (
            "json: cannot unmarshal string into Go struct field PodSpec.template.spec.terminationGracePeriodSeconds "
            "of type int64",
            "spec.terminationGracePeriodSeconds",
            "must be a whole number, not string",
        ),
        (
            "json: cannot unmarshal number 1.5 into Go struct field HTTPGetAction.template.spec.containers."
            "livenessProbe.httpGet.port of type int32",
            "spec.containers.livenessProbe.httpGet.port",
            "must be a whole number, not number 1.5",
        ),
        (
            "json: cannot unmarshal object into Go struct field Pod.template.spec.containers of type []v1.Container",
            "spec.containers",
            "must be []v1.Container, not object",
        ),
        (
            "json: cannot unmarshal string into Go struct field PodTemplate.template of type v1.PodTemplateSpec",
            "",
            "must be v1.PodTemplateSpec, not string",
        ),
        (
            "quantities must match the regular expression '^x$'",
            "",
            "can't be read by the API server: quantities must match the regular expression '^x$'",
        ),
    ],
    ids=["a number", "a number in a list", "a list", "all of it", "no field is named"],
)
def test_what_the_server_can_not_read_is_a_problem_of_the_template(why: str, path: str, message: str) -> None:
    said = f'PodTemplate in version "v1" cannot be handled as a PodTemplate: {why}'
    assert read_refusal(Invalid(400, "BadRequest", said)) == (FieldProblem(path, message),)


class Server:
    """An API server that gives these answers to dry runs, the last one for ever (None: it takes the template)."""

    def __init__(self, *answers: ApiError | None) -> None:
        self.answers, self.asked = list(answers), 0

    async def create(self, *_: Any, **__: Any) -> None:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is not None:
            raise answer


TEMPLATES = [WrittenTemplate("spec.template", {"spec": {"containers": []}})]
REFUSAL = refusal("", {"field": "template.spec.containers", "message": "Required value"})


@pytest.mark.parametrize(
    "no_word",
    [Forbidden(403, "Forbidden", "exceeded quota"), refusal("an admission webhook does not support dry run")],
    ids=["may not ask", "a webhook"],
)
async def test_a_verdict_that_was_not_given_is_asked_for_again(no_word: ApiError) -> None:
    clock, server = FakeClock(), Server(no_word, REFUSAL)
    judge = TemplateJudge(server, clock)  # type: ignore[arg-type]
    assert await judge.problems("default", TEMPLATES) == []
    assert await judge.problems("default", TEMPLATES) == [], "it is not asked for at every look"
    await clock.advance(61)
    assert [str(problem) for problem in await judge.problems("default", TEMPLATES)] == [
        "spec.template.spec.containers: Required value"
    ]
    assert server.asked == 2


async def test_a_namespace_that_is_being_deleted_is_told_once_and_quietly(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server = Server(NamespaceTerminating(403, "Forbidden", "namespace huge is being terminated"))
    judge = TemplateJudge(server, FakeClock())  # type: ignore[arg-type]
    for number in range(100):
        template = WrittenTemplate("spec.template", {"spec": {"priority": number}})
        assert await judge.problems("huge", [template]) == []
    assert [record.levelname for record in caplog.records] == ["INFO"]


async def test_an_answer_in_one_namespace_says_nothing_of_another() -> None:
    server = Server(Forbidden(403, "Forbidden", "exceeded quota"), REFUSAL)
    judge = TemplateJudge(server, FakeClock())  # type: ignore[arg-type]
    assert await judge.problems("crowded", TEMPLATES) == []
    assert len(await judge.problems("default", TEMPLATES)) == 1


async def test_a_refusal_is_not_for_ever_and_a_yes_is() -> None:
    clock, server = FakeClock(), Server(REFUSAL, None, REFUSAL)
    judge = TemplateJudge(server, clock)  # type: ignore[arg-type]
    assert len(await judge.problems("default", TEMPLATES)) == 1
    for _ in range(3):
        await clock.advance(1000)
        assert await judge.problems("default", TEMPLATES) == []
    assert server.asked == 2


class SlowServer(Server):
    """An API server that answers when it is told to."""

    def __init__(self, *answers: ApiError | None) -> None:
        super().__init__(*answers)
        self.answering = asyncio.Event()

    async def create(self, *_: Any, **__: Any) -> None:
        await self.answering.wait()
        await super().create()


async def test_a_thousand_that_ask_at_once_are_one_question() -> None:
    server = SlowServer(REFUSAL)
    judge = TemplateJudge(server, FakeClock())  # type: ignore[arg-type]
    asking = [asyncio.create_task(judge.problems("default", TEMPLATES)) for _ in range(1000)]
    await asyncio.sleep(0)
    asking[0].cancel()  # the first one goes away; the others get their answer
    server.answering.set()
    answers = await asyncio.gather(*asking[1:])
    assert {len(answer) for answer in answers} == {1}
    assert server.asked == 1


class OddRefused(SlowServer):
    """It refuses each second template; `most` is how many it was asked about at the same time."""

    def __init__(self) -> None:
        super().__init__(None)
        self.under_way = self.most = 0

    async def create(self, *request: Any, **__: Any) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await self.answering.wait()
        self.under_way -= 1
        if request[2]["template"]["spec"]["priority"] % 2:
            raise refusal("", {"field": "template.spec.priority", "message": "odd"})


async def test_templates_of_one_object_are_tried_out_together_but_not_all_at_once_and_told_in_order() -> None:
    server = OddRefused()
    judge = TemplateJudge(server, FakeClock())  # type: ignore[arg-type]
    templates = [WrittenTemplate(f"t[{number}]", {"spec": {"priority": number}}) for number in range(100)]
    asking = asyncio.create_task(judge.problems("default", templates))
    await settle()
    server.answering.set()
    assert [problem.path for problem in await asking] == [f"t[{number}].spec.priority" for number in range(1, 100, 2)]
    assert 1 < server.most <= 16


async def test_a_question_without_an_answer_is_asked_again() -> None:
    server = Server(Unreachable("no answer"), None)
    judge = TemplateJudge(server, FakeClock())  # type: ignore[arg-type]
    with pytest.raises(Unreachable):
        await judge.problems("default", TEMPLATES)
    assert await judge.problems("default", TEMPLATES) == []


LATE: list[ApiError] = [TimedOut("POST /podtemplates: TimeoutError"), ServerError(504, "Timeout", "not in 60s")]


@pytest.mark.parametrize("late", LATE, ids=["no answer", "a time-out of the server's own"])
async def test_a_server_that_is_late_is_left_alone_for_pauses_that_grow_to_an_hour(late: ApiError) -> None:
    clock, server = FakeClock(), Server(late)
    judge = TemplateJudge(server, clock)  # type: ignore[arg-type]
    began, asked_at = clock.now(), list[float]()
    while clock.now() < began + 20_000:
        before = server.asked
        with pytest.raises(NotJudgedInTime) as told:
            await judge.problems("default", TEMPLATES)
        assert told.value.message.startswith("spec.template: "), "the part that could not be judged"
        asked_at += [clock.now() - began] * (server.asked - before)
        await clock.advance(5)
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert pauses == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600, 3600]


async def test_an_answer_after_all_counts_and_the_next_pause_is_short_again() -> None:
    clock, server = FakeClock(), Server(*LATE, REFUSAL, LATE[0], None)
    judge = TemplateJudge(server, clock)  # type: ignore[arg-type]
    for pause in (10, 20):
        with pytest.raises(NotJudgedInTime):
            await judge.problems("default", TEMPLATES)
        await clock.advance(pause)
    assert len(await judge.problems("default", TEMPLATES)) == 1
    await clock.advance(60)
    with pytest.raises(NotJudgedInTime):
        await judge.problems("default", TEMPLATES)
    await clock.advance(10)
    assert await judge.problems("default", TEMPLATES) == []


async def test_a_late_answer_is_remembered_though_nobody_waits_for_it_any_more() -> None:
    server = SlowServer(*LATE)
    judge = TemplateJudge(server, FakeClock())  # type: ignore[arg-type]
    asking = asyncio.create_task(judge.problems("default", TEMPLATES))
    await settle()
    asking.cancel()
    await settle()
    server.answering.set()
    await settle()
    with pytest.raises(NotJudgedInTime):
        await judge.problems("default", TEMPLATES)
    assert server.asked == 1


async def test_of_two_that_could_not_be_judged_the_first_is_told_each_time() -> None:
    clock, server = FakeClock(), Server(LATE[0])
    judge = TemplateJudge(server, clock)  # type: ignore[arg-type]
    both = [WrittenTemplate(name, {"spec": {"nodeName": name}}) for name in ("one", "two")]
    for _ in range(4):
        with pytest.raises(NotJudgedInTime, match="one: "):
            await judge.problems("default", both)
        await clock.advance(15)


async def test_an_amount_that_takes_the_server_hours_is_not_shown_to_it() -> None:
    server = Server(None)
    judge = TemplateJudge(server, FakeClock())  # type: ignore[arg-type]
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1e99999999999"}}}]}
    (problem,) = await judge.problems("default", [WrittenTemplate("spec.template", {"spec": spec})])
    assert problem.path == "spec.template.spec.containers[0].resources.requests[cpu]"
    part = WrittenTemplate("spec.autoscalerOptions", {"spec": spec}, within="spec.containers[0]")
    (problem,) = await judge.problems("default", [part])
    assert problem.path == "spec.autoscalerOptions.resources.requests[cpu]"
    assert server.asked == 0


def test_every_unknown_field_is_told_once() -> None:
    strict = (
        'PodTemplate in version "v1" cannot be handled as a PodTemplate: strict decoding error: unknown field '
        '"template.spec.containers[0].resoruces", unknown field "template.spec.nodeSelectr", '
        'unknown field "template.spec.nodeSelectr"'
    )
    assert [problem.path for problem in read_refusal(Invalid(400, "BadRequest", strict))] == [
        "spec.containers[0].resoruces",
        "spec.nodeSelectr",
    ]
