"""How the API server's answer to a dry run is read; that it is asked, and answers so, is tested on a real one."""

from __future__ import annotations

from typing import Any

import pytest

from muster.controllers.template_judge import read_refusal
from muster.kube.errors import Invalid


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
