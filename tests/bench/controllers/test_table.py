"""What the table says of runs, good and bad."""

from __future__ import annotations

import re

import pytest

from bench.controllers.result import Figures, Result, Used, percentile, used_since
from bench.controllers.table import HEADER, medians, row
from bench.processes import Usage


def _figures(rate: float) -> Figures:
    return Figures(
        per_second=rate,
        p50=1.5,
        p99=2.5,
        system={"operator": Used(ms_each=3, peak_mib=40), "scheduler": Used(ms_each=4, peak_mib=50)},
        plane={"kube-apiserver": Used(ms_each=20, peak_mib=400), "etcd": Used(ms_each=6, peak_mib=90)},
        writes=10,
        writes_by_kind={"POST pods": 10},
        writes_after=7,
        writes_after_by_kind={"POST events": 7},
    )


def _result(rate: float | None, *trouble: str) -> Result:
    figures = None if rate is None else _figures(rate)
    return Result(scenario="clusters", system="both", run=0, count=5, figures=figures, trouble=trouble)


def test_a_row_has_the_sum_of_a_systems_processes_and_each_of_them() -> None:
    assert HEADER.startswith("scenario  system          per s    p50 s    p99 s       ms   API ms  etcd ms peak MiB")
    line = row(_result(20.0))
    assert re.sub(" +", " ", line).startswith("clusters both 20.0 1.5 2.5 7.0 20.0 6.0 90.0 10.0 7.0 ")
    assert line.endswith("operator 3.0 ms 40 MiB, scheduler 4.0 ms 50 MiB")


def test_trouble_is_said_in_the_row_with_the_figures_if_there_are_any() -> None:
    assert row(_result(None, "it died")).split(maxsplit=2)[2] == "FAILED: it died"
    assert row(_result(20.0, "3 pods too many", "a job twice")).endswith("FAILED: 3 pods too many; a job twice")


def test_medians_are_of_the_runs_that_went_well() -> None:
    good = [_result(rate) for rate in (10, 30, 20)]
    (line,) = medians([*good, _result(1000, "wrong count"), _result(None, "it died")])
    assert line.split()[2] == "20.0"
    assert line.endswith("(median of 3; 2 failed)")


def test_a_system_that_never_did_well_has_no_median() -> None:
    (line,) = medians([_result(None, "it died")])
    assert line.split(maxsplit=2)[2] == "all 1 failed"


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_a_percentile_is_a_value_that_there_is(share: float, value: int) -> None:
    assert percentile(range(1, 101), share) == value


def test_what_was_used_is_the_difference_for_each_object_and_the_latest_peak() -> None:
    before, after = {"a": Usage(1.0, 50)}, {"a": Usage(3.0, 60)}
    assert used_since(before, after, 1000) == {"a": Used(ms_each=2.0, peak_mib=60)}
