"""The list of KubeRay's tests, and how one of them is asked for."""

from __future__ import annotations

import pytest

from tests.compatibility.cases import PARTS, Case, cases, unlisted


@pytest.mark.parametrize(
    ("case", "pattern"),
    [
        (Case("e2e", "TestRayClusterSuspend"), "^TestRayClusterSuspend$"),
        (Case("e2e", "TestRayJob", "Successful RayJob"), "^TestRayJob$/^Successful_RayJob$"),
        (Case("e2e", "T", "to 'Complete' if it has stopped."), r"^T$/^to_'Complete'_if_it_has_stopped\.$"),
        (Case("e2e", "T", "in order: Workers->Cluster"), "^T$/^in_order:_Workers->Cluster$"),
        (Case("e2e", "T", "autoscaler(from 2 to 3)#01"), r"^T$/^autoscaler\(from_2_to_3\)#01$"),
    ],
)
def test_a_pattern_names_one_case_in_the_words_of_go(case: Case, pattern: str) -> None:
    assert case.pattern == pattern


def test_no_case_is_listed_twice() -> None:
    listed = [(case.package, case.name) for case in cases()]
    assert len(listed) == len(set(listed))


def test_a_test_that_only_one_side_knows_is_told() -> None:
    assert unlisted("e2e", PARTS["e2e"]) == []
    assert unlisted("e2e", [*list(PARTS["e2e"])[1:], "TestNew"]) == sorted([next(iter(PARTS["e2e"])), "TestNew"])
