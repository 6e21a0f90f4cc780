"""What is seen of a process at rest, and what is wrong with it."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from bench.controllers.arrivals import Failed
from bench.standing.rest import Reading, Watchman, faults_of
from bench.standing.result import Interval, Used


def _reading(at: float, cpu: float, **writes: int) -> Reading:
    return Reading(at, Used(cpu=cpu, resident_mib=50, peak_mib=60), Counter(writes))


def _readings() -> list[Reading]:
    """Of a clock that has begun just now, so that no interval is waited for long."""
    now = time.monotonic()
    return [_reading(now, 7, leases=100), _reading(now + 10, 7.5, leases=110), _reading(now + 20, 9.5, leases=125)]


async def test_each_interval_has_its_own_share() -> None:
    told: list[Used | Interval] = []
    readings = _readings()
    watchman = Watchman(iter(readings).__next__, lambda: None, told.append)
    await watchman.watch(0.02, 2)
    first, second = watchman.intervals
    assert told == [readings[0].used, first, second]
    assert (first.cpu_percent, second.cpu_percent) == pytest.approx((5, 20))
    assert (first.end, second.end) == pytest.approx((10, 20))
    assert (first.writes, second.writes) == ({"leases": 10}, {"leases": 15})


async def test_the_whole_is_from_the_first_reading_to_the_last() -> None:
    watchman = Watchman(iter(_readings()).__next__, lambda: None, lambda _: None)
    await watchman.watch(0.02, 2)
    assert watchman.whole is not None
    assert watchman.whole.cpu_percent == pytest.approx(12.5)
    assert watchman.whole.writes == {"leases": 25}


async def test_a_death_is_told_at_once_and_what_was_seen_before_is_kept() -> None:
    told: list[Used | Interval] = []
    watchman = Watchman(iter(_readings()).__next__, lambda: "muster has ended" if len(told) == 2 else None, told.append)
    with pytest.raises(Failed, match="muster has ended"):
        await watchman.watch(1000, 100_000)
    assert watchman.intervals == told[1:]
    assert watchman.whole == told[1]


def test_before_the_first_interval_is_over_there_is_no_whole() -> None:
    watchman = Watchman(iter(_readings()).__next__, lambda: None, lambda _: None)
    assert (watchman.whole, watchman.intervals) == (None, [])


@pytest.mark.parametrize(
    ("writes", "faults"),
    [
        ({"PUT leases": 3}, []),
        ({}, ["no Lease was written"]),
        ({"PUT leases": 3, "PATCH pods": 2, "POST events": 1}, ["3 writes that are no Lease's"]),
        ({"PATCH pods": 2}, ["2 writes that are no Lease's", "no Lease was written"]),
    ],
)
def test_only_leases_may_be_written_and_they_must_be(writes: dict[str, int], faults: list[str]) -> None:
    assert faults_of(writes) == faults
