"""What several runs come to, and the table."""

from __future__ import annotations

import pytest

from bench.census import Census
from bench.processes import Usage
from bench.report import table
from bench.results import API_SERVER, ETCD, SYSTEM, Result, summary
from bench.scenarios import Mode


def result(rate: float, *, partial: int = 0, bound: int = 100, faults: tuple[str, ...] = ()) -> Result:
    return Result(
        expected=100,
        census=Census(bound=bound, partial=partial),
        during=bound,
        seconds=bound / rate if bound else None,
        latencies=tuple(index / 1000 for index in range(1, 101)),
        usage={SYSTEM: Usage(0.1, 50.0), API_SERVER: Usage(0.2, 300.0), ETCD: Usage(0.05, 40.0)},
        writes={"POST pods/binding": 100, "PATCH podgroups": 120},
        faults=faults,
    )


@pytest.mark.parametrize(("percent", "expected"), [(50, 0.05), (90, 0.09), (99, 0.099), (100, 0.1)])
def test_quantiles_are_latencies_that_were_measured(percent: int, expected: float) -> None:
    assert result(10).quantile(percent) == expected


def test_there_is_no_quantile_of_nothing() -> None:
    assert Result(expected=1).quantile(50) is None
    assert Result(expected=1).rate is None


def test_figures_are_medians_and_faults_the_worst() -> None:
    runs = [result(10), result(30, partial=2, bound=90, faults=("2 gangs bound in part",)), result(20)]
    found = summary(runs)
    assert found.rate == pytest.approx(20)
    assert (found.bound, found.partial) == (90, 2)
    assert found.faults == ("run 2: 2 gangs bound in part",)
    assert found.writes_a_pod == pytest.approx(2.2)


def test_a_run_without_a_figure_is_left_out_of_its_median() -> None:
    assert summary([result(10), Result(expected=100, faults=("bound nothing",))]).rate == pytest.approx(10)


def test_the_table_has_a_row_for_each_system_with_its_share_of_the_ceiling() -> None:
    summaries = {
        "ceiling": summary([result(40)]),
        "muster": summary([result(30)]),
        "dead": summary([Result(expected=100, faults=("dead ended\nwith status 1",))]),
    }
    lines = table(summaries, {"muster": "ceiling", "dead": "ceiling"}, Mode.STREAM).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| ceiling", "| muster", "| dead"]
    assert "| 100 of 100 | 0 | 30 | 75% | 50 / 90 / 99 | 1.00 / 2.00 / 0.50 | 50 / 300 / 40 | 2.20 |" in lines[3]
    assert lines[4].startswith("| dead | 0 of 100 | 0 | - | - | - / - / - |")
    assert lines[4].endswith("| dead ended with status 1 |")


def test_the_rate_of_what_is_paced_is_not_told() -> None:
    assert "| 100 of 100 | 0 | - | - | 50 / 90 / 99 |" in table({"muster": summary([result(30)])}, {}, Mode.PACED)
