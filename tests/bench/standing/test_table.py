"""What the tables say."""

from __future__ import annotations

from bench.standing.result import Interval, Rest, Start, Used
from bench.standing.table import rest_header, rest_row, rest_summary, start_header, start_row

_USED = Used(cpu=1.25, waited=0.5, resident_mib=90, peak_mib=100)
_LATER = Used(cpu=2.5, resident_mib=95, peak_mib=120)
_INTERVAL = Interval(seconds=600, end=1200, cpu_percent=0.4, used=_LATER, writes={"PUT leases": 9, "POST events": 2})


def test_a_start_has_a_cell_for_each_column() -> None:
    start = Start(components="scheduler", run=0, first=3, gang=3.5, at_first=_USED, later=_LATER)
    assert start_row(start).split() == [
        "scheduler",
        "1",
        "3.00",
        "3.50",
        "0.50",
        "1.25",
        "100.0",
        "2.50",
        "120.0",
        "95.0",
    ]
    assert len(start_row(start)) == len(start_header())


def test_a_failed_start_has_what_was_reached_and_what_went_wrong() -> None:
    start = Start(components="scheduler", run=1, first=3, at_first=_USED, trouble=("muster has ended", "2 pods"))
    assert start_row(start).split(maxsplit=10)[:10] == [
        "scheduler",
        "2",
        "3.00",
        "-",
        "0.50",
        "1.25",
        "100.0",
        "-",
        "-",
        "-",
    ]
    assert start_row(start).endswith(" FAILED: muster has ended; 2 pods")


def test_an_interval_of_rest_names_the_writes_that_are_no_leases() -> None:
    assert rest_row(_INTERVAL).split(maxsplit=6) == ["1200.0", "0.40", "95.0", "120.0", "9", "2", "2 POST events"]


def test_the_beginning_of_a_rest_has_its_memory() -> None:
    assert rest_row(_USED).split() == ["0.0", "-", "90.0", "100.0", "-", "-"]
    assert len(rest_row(_USED)) == len(rest_header())


def test_the_end_of_a_rest_is_all_of_it_and_what_went_wrong() -> None:
    rest = Rest(beginning=_USED, intervals=(_INTERVAL,), whole=_INTERVAL, trouble=("a", "b"))
    whole, failed = rest_summary(rest)
    assert whole == f"{rest_row(_INTERVAL)}  (all)"
    assert failed == "FAILED: a; b"


def test_a_rest_that_did_not_begin_has_only_what_went_wrong() -> None:
    assert rest_summary(Rest(trouble=("no API server",))) == ["FAILED: no API server"]
