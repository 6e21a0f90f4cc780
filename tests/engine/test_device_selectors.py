"""CEL selectors of devices, as kube-scheduler reads them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from muster.engine.device_selectors import DeviceSelectors
from muster.scheduler.devices import Device, Version

D = "gpu.example.com"
GPU = Device(
    D,
    "pool",
    "gpu-0",
    {(D, "model"): "a100", (D, "index"): 1, (D, "ecc"): True, (D, "version"): Version("1.10.0-rc.2"), ("b.c", "x"): 1},
    {(D, "memory"): Fraction(40 * 1024**3), (D, "share"): Fraction(1, 2)},
)
A, C = f'device.attributes["{D}"]', f'device.capacity["{D}"]'


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        (f'device.driver == "{D}"', True),
        ('device.driver == "other"', False),
        (f'{A}.model == "a100" && {A}.index < 2 && {A}.ecc', True),
        (f"device.attributes['{D}'].model == 'h100'", False),
        (f'{A}["model"] in ["a100", "h100"]', True),
        (f'{A}.model.matches("^a1")', True),
        ('device.attributes["b.c"].x == 1', True),
        (f'{C}.memory.compareTo(quantity("40Gi")) >= 0', True),
        (f'{C}.memory.compareTo(quantity("40961Mi")) >= 0', False),
        (f'{C}.memory == quantity("40960Mi")', True),
        (f'{C}.memory.isGreaterThan(quantity("10Gi")) && !{C}.memory.isLessThan(quantity("10Gi"))', True),
        (f'{C}.share.compareTo(quantity("500m")) == 0 && !{C}.share.isInteger()', True),
        (f'{C}.memory.sub(quantity("39Gi")).add(1).asInteger() == 1073741825', True),
        (f'{A}.version.compareTo(semver("1.9.0")) > 0 && {A}.version.isLessThan(semver("1.10.0"))', True),
        (f'{A}.version.isGreaterThan(semver("1.10.0-rc.10"))', False),
        (f'{A}.version == semver("1.10.0-rc.2") && {A}.version.minor() == 10', True),
        (f"has({A}.nosuch)", False),
        (f'"model" in {A}', True),
    ],
)
def test_an_expression_selects_what_it_says(expression: str, selected: bool) -> None:
    assert DeviceSelectors()(expression, GPU) is selected


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        (f'{A}.nosuch == "x"', False),
        ('device.attributes["nosuch"].x == 1', False),
        ('has(device.attributes["nosuch"].x)', False),
        ('!has(device.attributes["nosuch"].x)', True),
        (f'{A}.nosuch == "x" || {A}.model == "a100"', True),
        (f'{A}.nosuch == "x" && {A}.model == "a100"', False),
    ],
)
def test_what_a_device_has_not_got_does_not_select_it(expression: str, selected: bool) -> None:
    assert DeviceSelectors()(expression, GPU) is selected


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(f'{A}.?model.orValue("") == "h100"', id="syntax"),
        pytest.param(f'cel.bind(d, {A}, d.model == "h100")', id="macro"),
        pytest.param(f'{A}.model.lowerAscii() == "h100"', id="function"),
        pytest.param(f'{C}.memory >= quantity("1Ti")', id="operator"),
        pytest.param('semver("one") == semver("two")', id="a function that fails"),
        pytest.param(f"{A}.index", id="no truth value"),
        pytest.param("(" * 5000, id="deep"),
    ],
)
def test_what_can_not_be_evaluated_is_left_to_kube_scheduler(expression: str) -> None:
    selects = DeviceSelectors()
    assert selects(expression, GPU)
    assert selects(expression, GPU)
