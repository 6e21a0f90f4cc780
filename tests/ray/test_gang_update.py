"""Patches of an existing PodGroup: as little as possible, and nothing when nothing changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.ray.gang_update import desired_update, released

Json = dict[str, Any]


def pod_group(annotations: Json | None = None, **spec: Any) -> Json:
    size: Json = {
        "minMember": 3,
        "minTaskMember": {"headgroup": 1, "small": 2},
        "minResources": {"cpu": "3", "memory": "3Gi"},
    }
    return {"metadata": {"name": "g", "annotations": annotations or {}}, "spec": {**size, **spec}}


def merge(target: Json, patch: Json) -> Json:
    """RFC 7386, as the API server does it."""
    result = copy.deepcopy(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merge(result.get(key) or {}, value)
        else:
            result[key] = value
    return result


@pytest.mark.parametrize(
    "existing",
    [
        pod_group(),
        pod_group(minResources={"cpu": 3, "memory": "3072Mi"}),
        pod_group(minResources={"cpu": "3000m", "memory": 3221225472}),
        pod_group(queue="elsewhere", priorityClassName="changed"),
        pod_group({"note": "of someone else"}),
    ],
)
def test_nothing_is_written_when_nothing_changed_however_it_is_spelled(existing: Json) -> None:
    assert desired_update(existing, pod_group()) is None


@pytest.mark.parametrize(
    ("existing", "wanted", "patch"),
    [
        (pod_group(), pod_group(minMember=4), {"spec": {"minMember": 4}}),
        (
            pod_group(),
            pod_group(minTaskMember={"headgroup": 1, "big": 2}),
            {"spec": {"minTaskMember": {"small": None, "big": 2}}},
        ),
        (
            pod_group(),
            pod_group(minResources={"cpu": "4", "memory": "3Gi", "nvidia.com/gpu": "1"}),
            {"spec": {"minResources": {"cpu": "4", "nvidia.com/gpu": "1"}}},
        ),
        (pod_group(), pod_group(minResources={"cpu": "3"}), {"spec": {"minResources": {"memory": None}}}),
        (
            pod_group(minResources={"cpu": "junk"}),
            pod_group(minResources={"cpu": "1"}),
            {"spec": {"minResources": {"cpu": "1"}}},
        ),
        (
            pod_group({"muster.dev/companions": "[1]"}),
            pod_group({"muster.dev/companions": "[2]"}),
            {"metadata": {"annotations": {"muster.dev/companions": "[2]"}}},
        ),
        (
            pod_group({"muster.dev/companions": "[1]"}),
            pod_group(),
            {"metadata": {"annotations": {"muster.dev/companions": None}}},
        ),
        (pod_group({"muster.dev/companions": "[1, 2]"}), pod_group({"muster.dev/companions": "[1,2]"}), None),
        (
            pod_group({"muster.dev/companions": "[" * 100_000}),
            pod_group({"muster.dev/companions": "[1]"}),
            {"metadata": {"annotations": {"muster.dev/companions": "[1]"}}},
        ),
        (
            pod_group({"muster.dev/companions": "{"}),
            pod_group({"muster.dev/companions": "[1]"}),
            {"metadata": {"annotations": {"muster.dev/companions": "[1]"}}},
        ),
        ({"spec": {}}, {"spec": {"minMember": 0, "minTaskMember": {}, "minResources": {}}}, None),
        ({}, pod_group(), {"spec": pod_group()["spec"]}),
    ],
)
def test_only_the_difference_is_written(existing: Json, wanted: Json, patch: Json | None) -> None:
    assert desired_update(existing, wanted) == patch


def test_a_released_gang_holds_nothing() -> None:
    existing = pod_group({"muster.dev/companions": "[1]", "muster.dev/companion-nodes": "{}", "note": "kept"})
    patch = released(existing)
    assert patch is not None
    assert merge(existing, patch) == {
        "metadata": {"name": "g", "annotations": {"note": "kept"}},
        "spec": {"minMember": 0, "minTaskMember": {}, "minResources": {}},
    }


def test_releasing_twice_writes_once() -> None:
    existing = pod_group({"muster.dev/companion-nodes": "{}"})
    assert released(merge(existing, released(existing) or {})) is None


def test_where_only_the_companions_node_is_left_it_goes() -> None:
    existing = {"metadata": {"annotations": {"muster.dev/companion-nodes": "{}"}}, "spec": {}}
    assert released(existing) == {"metadata": {"annotations": {"muster.dev/companion-nodes": None}}}


AMOUNTS = st.sampled_from(["1", 1, "1000m", "2", "1Gi", "1024Mi", "0"])
GROUPS = st.builds(
    lambda members, roles, resources, companions: {
        "metadata": {"annotations": {"muster.dev/companions": companions} if companions else {}},
        "spec": {"minMember": members, "minTaskMember": roles, "minResources": resources},
    },
    st.integers(0, 3),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
    st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), AMOUNTS),
    st.sampled_from([None, "[1]", "[2]"]),
)


@given(existing=GROUPS, wanted=GROUPS)
def test_after_the_patch_nothing_is_left_to_write(existing: Json, wanted: Json) -> None:
    patch = desired_update(existing, wanted)
    assert desired_update(merge(existing, patch or {}), wanted) is None
    assert patch is None or patch != {}
