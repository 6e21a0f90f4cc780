"""Reading custom resources and writing their status by difference."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.errors import FieldProblem
from muster.api.rayjob import RayJob
from muster.controllers.primary import (
    invalid_events,
    invalid_reason,
    managed_elsewhere,
    merge_patch,
    spec_problems,
)

JSON = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


@given(old=OBJECTS, new=OBJECTS)
def test_a_merge_patch_turns_the_old_into_the_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert apply_merge_patch(old, merge_patch(old, new)) == new


@given(same=OBJECTS)
def test_no_change_is_an_empty_patch(same: dict[str, Any]) -> None:
    assert merge_patch(same, same) == {}


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, []),
        ({"spec": {"backoffLimit": "two", "suspend": 1}}, ["spec.backoffLimit", "spec.suspend"]),
        ({"spec": "a job, please"}, ["spec"]),
        ({"spec": {"backoffLimit": "two"}, "status": {"failed": "one"}}, []),
        ({"spec": {"backoffLimit": "two"}, "status": "running"}, []),
    ],
)
def test_wrong_types_are_told_in_the_status_where_nothing_else_is_wrong(
    changes: dict[str, Any], fields: list[str]
) -> None:
    raw = {"metadata": {"name": "demo", "namespace": "default", "uid": "u"}, "spec": {}, **changes}
    assert sorted(problem.path for problem in spec_problems(RayJob, raw)) == fields


def test_none_takes_a_field_away_and_is_nothing_where_there_is_none() -> None:
    assert merge_patch({"a": 1}, {"a": None, "b": None}) == {"a": None}


@pytest.mark.parametrize(
    ("spec", "elsewhere"),
    [
        ({}, False),
        ({"managedBy": None}, False),
        ({"managedBy": ""}, False),
        ({"managedBy": "ray.io/kuberay-operator"}, False),
        ({"managedBy": "kueue.x-k8s.io/multikueue"}, True),
        ({"managedBy": 7}, True),
        ("not a mapping", False),
    ],
)
def test_an_object_that_names_another_controller_is_left_alone(spec: Any, elsewhere: bool) -> None:
    assert managed_elsewhere({"metadata": {}, "spec": spec}) is elsewhere


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("metadata.name", "InvalidRayJobMetadata"),
        ("spec.rayClusterSpec", "InvalidRayJobSpec"),
        ("status.failed", "InvalidRayJobStatus"),
        ("spec", "InvalidRayJobSpec"),
        ("(the object itself)", "InvalidRayJobSpec"),
    ],
)
def test_the_event_reason_says_which_part_is_wrong(path: str, reason: str) -> None:
    assert invalid_reason("RayJob", FieldProblem(path, "is wrong")) == reason


def test_all_that_is_wrong_with_one_part_is_one_event() -> None:
    problems = [
        FieldProblem("spec.a", "bad"),
        FieldProblem("metadata.name", "too long"),
        FieldProblem("spec.b", "worse"),
    ]
    assert invalid_events("RayJob", problems) == [
        ("InvalidRayJobSpec", "spec.a: bad; spec.b: worse"),
        ("InvalidRayJobMetadata", "metadata.name: too long"),
    ]
    assert invalid_events("RayJob", []) == []
