from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.scheduler.resources import Missing, Resources, format_amount, share
from muster.testing import resources

AMOUNTS = st.builds(
    Resources,
    st.integers(0, 10_000),
    st.integers(0, 2**40),
    st.dictionaries(st.sampled_from(("pods", "nvidia.com/gpu", "x")), st.integers(0, 5000), max_size=3),
)


@pytest.mark.parametrize(
    ("left", "right", "zero", "infinite"),
    [
        (resources(1, 1), resources(1, 1), True, True),
        (resources(1.001, 1), resources(1, 1), False, False),
        (resources(1, 1, gpu=1), resources(1, 1), False, True),
        (resources(1, 1), resources(1, 1, gpu=1), True, False),
        (resources(1, 1, gpu=0), resources(1, 1), True, True),
        (resources(0, 0), Resources(-1, 0), False, False),
        (resources(1, 1), Resources(1000, 2**30, {"x": -1}), False, False),
    ],
)
def test_less_equal_reads_a_missing_dimension_as_zero_or_as_infinite(
    left: Resources, right: Resources, zero: bool, infinite: bool
) -> None:
    assert left.less_equal(right) is zero
    assert left.less_equal(right, Missing.INFINITE) is infinite


@pytest.mark.parametrize(
    ("left", "limit", "request_", "found"),
    [
        (resources(3, 9), resources(2, 1), resources(1), ["cpu"]),
        (resources(3, 9), resources(2, 1), resources(1, 1), ["cpu", "memory"]),
        (resources(3, 9), resources(4, 1), resources(1), []),
        (resources(1, gpu=2), resources(1), resources(1, gpu=1), ["nvidia.com/gpu"]),
        (resources(1), resources(1), resources(1, gpu=1), []),
        (resources(1, pods=9), resources(1, pods=1), resources(1, pods=1), []),
    ],
)
def test_violations_look_only_at_what_is_asked_for(
    left: Resources, limit: Resources, request_: Resources, found: list[str]
) -> None:
    assert left.violations(limit, request_) == found


@given(AMOUNTS, AMOUNTS)
def test_adding_and_taking_away_leaves_no_trace(one: Resources, other: Resources) -> None:
    account = one.clone()
    account.add(other)
    account.sub(other)
    assert account == one
    assert account.key() == one.key()


@given(AMOUNTS, AMOUNTS)
def test_minimum_maximum_and_excess_agree(one: Resources, other: Resources) -> None:
    assert one.minimum(other).less_equal(one)
    assert one.less_equal(one.maximum(other))
    assert one.exceeded(other).plus(one.minimum(other)) == one


@pytest.mark.parametrize(
    ("dimension", "value", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 3000, "3"),
        ("memory", 2 * 2**30, "2Gi"),
        ("memory", 1_500_000_000, "1500M"),
        ("memory", 1, "1"),
        ("memory", 0, "0"),
        ("nvidia.com/gpu", 2000, "2"),
        ("pods", 7, "7"),
    ],
)
def test_amounts_are_written_as_kubernetes_quantities(dimension: str, value: int, text: str) -> None:
    assert format_amount(dimension, value) == text


@pytest.mark.parametrize(("part", "whole", "value"), [(0, 0, 0.0), (1, 0, 1.0), (1, 2, 0.5), (3, 2, 1.5)])
def test_share(part: int, whole: int, value: float) -> None:
    assert share(part, whole) == value


@pytest.mark.parametrize("asked", [Resources(), resources(pods=1), resources(gpu=0)])
def test_pods_do_not_make_a_request(asked: Resources) -> None:
    assert asked.is_empty()
