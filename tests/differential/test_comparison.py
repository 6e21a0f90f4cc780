"""What counts as a difference, and what a listed one accounts for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.comparison import ABSENT, Difference, findings, unlisted
from tests.differential.normal_form import NormalForm, normal_form


def pod(name: str, uid: str, **changes: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "case-001", "uid": uid, "labels": {"ray.io/group": "workers"}}
    containers = [{"name": "ray", "env": [{"name": "A", "value": "1"}, {"name": "ME", "value": name}]}]
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": containers}, **changes}


def test_names_that_chance_made_are_alike() -> None:
    one = normal_form([pod("demo-workers-x7k2p", "11111111-1111-1111-1111-111111111111")])
    other = normal_form([pod("demo-workers-worker-abcde", "22222222-2222-2222-2222-222222222222")])
    assert list(findings("case", one, other)) == []
    assert one["Pod workers 0"]["spec/containers/ray/env/ME/value"] == "POD-OF-workers"


@pytest.mark.parametrize(
    ("muster", "told"),
    [
        ({"Pod a 0": {"x": 1}}, []),
        ({"Pod a 0": {"x": 2}}, [("Pod a 0", "x", 1, 2)]),
        ({"Pod a 0": {}}, [("Pod a 0", "x", 1, ABSENT)]),
        ({"Pod a 0": {"x": 1, "y": 0}}, [("Pod a 0", "y", ABSENT, 0)]),
        ({}, [("Pod a 0", "", "made", ABSENT)]),
        ({"Pod a 0": {"x": 1}, "Job b": {}}, [("Job b", "", ABSENT, "made")]),
    ],
)
def test_every_field_and_every_object_counts(muster: NormalForm, told: list[tuple[object, ...]]) -> None:
    found = findings("case", {"Pod a 0": {"x": 1}}, muster)
    assert [(one.key, one.path, one.kuberay, one.muster) for one in found] == told


def test_the_order_of_what_both_have_counts() -> None:
    kuberay: NormalForm = {"Pod": {"env/ORDER": "A B C"}}
    assert not list(findings("case", kuberay, {"Pod": {"env/ORDER": "A X B C"}}))
    assert list(findings("case", kuberay, {"Pod": {"env/ORDER": "B A C"}}))


@pytest.mark.parametrize(
    ("difference", "covered"),
    [
        (Difference("x", ("Pod *",), ("spec/*",)), True),
        (Difference("x", ("Job *",), ("spec/*",)), False),
        (Difference("x", ("Pod *",), ("spec",)), False),
        (Difference("x", ("Pod *",), ("spec/*",), ("other*",)), False),
        (Difference("x", ("Pod *",), ("spec/*",), holds=lambda kuberay, muster: muster == 2), True),
        (Difference("x", ("Pod *",), ("spec/*",), holds=lambda kuberay, muster: muster == 3), False),
    ],
)
def test_a_listed_difference_accounts_for_its_own_fields_alone(difference: Difference, covered: bool) -> None:
    found = list(findings("case", {"Pod a 0": {"spec/x": 1}}, {"Pod a 0": {"spec/x": 2}}))
    assert (unlisted(found, [difference]) == []) is covered
