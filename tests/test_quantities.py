"""Quantities: exact, as the API server reads them, and back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.quantities import QuantityError, format_quantity, is_costly, milli, parse_quantity, units, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("2", 2),
        ("+2", 2),
        ("-2", -2),
        ("500m", Fraction(1, 2)),
        ("100u", Fraction(1, 10_000)),
        ("7n", Fraction(7, 10**9)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1k", 1000),
        ("1M", 10**6),
        ("1E", 10**18),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("2Ei", 2**61),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("1.5e+2", 150),
        (1, 1),
        (0.5, Fraction(1, 2)),
        (1e22, 2**63 - 1),
        (10**30, 2**63 - 1),
        (-(10**30), -(2**63 - 1)),
        ("0.1n", Fraction(1, 10**9)),
        ("1e999999999", 2**63 - 1),
        ("1e-999999999", Fraction(1, 10**9)),
        ("0e999999999", 0),
    ],
)
def test_a_quantity_has_its_exact_value(text: str | int | float, value: Fraction | int) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            " 1",
            "1 ",
            "1\n",
            "one",
            "1K",
            "1ki",
            "1mm",
            "1e",
            "1e1.5",
            "1_000",
            "0x10",
            "1,5",
            ".",
            "-",
            "--1",
            "٣",
        ),
        *("9" * 301, True, False, None, [], {}, float("nan"), float("inf")),
    ],
)
def test_what_is_no_quantity_is_refused_with_its_text(text: Any) -> None:
    with pytest.raises(QuantityError) as refused:
        parse_quantity(text)
    assert refused.value.text is text
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "quantity",
    [
        *("1e401", "1e99999999999", "1E2147483647", "1e-99999999", "0e+1000000", ".5e999", " 1e999999 \n", "9" * 301),
        *(f"1{'0' * 400}m", f"1e{'0' * 299}1", f"1e999{' ' * 300}", f"1e{'9' * 10_000}"),
    ],
)
def test_what_the_api_server_would_work_out_for_hours_is_costly(quantity: str) -> None:
    assert is_costly(quantity)


@pytest.mark.parametrize(
    "quantity",
    ["1", "500m", "1.5Gi", "1E", "2Ei", "1e3", "1e-3", "1e400", "1e-400", "9" * 300, 1e308, 10**18, 0, None, []],
)
def test_what_it_reads_at_once_is_not(quantity: object) -> None:
    assert not is_costly(quantity)


@pytest.mark.parametrize(
    ("text", "thousandths", "pieces"),
    [("1", 1000, 1), ("1500m", 1500, 2), ("1n", 1, 1), ("0", 0, 0), ("1Ki", 1024000, 1024)],
)
def test_parts_of_a_unit_round_up(text: str, thousandths: int, pieces: int) -> None:
    assert (milli(text), whole(text)) == (thousandths, pieces)


@pytest.mark.parametrize(
    ("text", "resource", "amount", "shortest"),
    [
        ("1.5", "cpu", 1500, "1500m"),
        ("2000m", "cpu", 2000, "2"),
        ("0.0001", "cpu", 1, "1m"),
        ("1024Mi", "memory", 2**30, "1Gi"),
        ("1000", "memory", 1000, "1000"),
        ("1G", "memory", 10**9, "1000000000"),
        ("0", "memory", 0, "0"),
        ("110", "pods", 110, "110"),
        ("2", "nvidia.com/gpu", 2000, "2"),
        ("1Gi", "ephemeral-storage", 2**30 * 1000, "1Gi"),
        ("2Mi", "hugepages-2Mi", 2**21 * 1000, "2Mi"),
    ],
)
def test_an_amount_is_an_integer_in_the_unit_of_its_resource(
    text: str, resource: str, amount: int, shortest: str
) -> None:
    assert units(text, resource) == amount
    assert format_quantity(amount, resource) == shortest


@given(st.integers(-(2**62), 2**62), st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu", "ephemeral-storage"]))
def test_what_is_formatted_parses_to_the_same_amount(amount: int, resource: str) -> None:
    assert units(format_quantity(amount, resource), resource) == amount


@given(st.text(alphabet="0123456789.+-eEkKMGTPinum", max_size=12))
def test_any_text_is_a_quantity_or_is_refused(text: str) -> None:
    try:
        value = parse_quantity(text)
    except QuantityError:
        return
    assert abs(value) <= 2**63 - 1
    assert value.denominator <= 10**9
