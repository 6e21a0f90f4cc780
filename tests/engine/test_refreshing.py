"""How often what is merely out of date is written."""

from __future__ import annotations

from muster.engine.refreshing import EACH, PACE, Refreshing


def test_of_many_one_has_its_turn_at_a_time_and_all_have_in_the_end() -> None:
    refreshing, names = Refreshing(), [f"g{index}" for index in range(4)]
    turns = [[name for name in names if refreshing.is_due(name, step * PACE)] for step in range(4)]
    assert turns == [[name] for name in names]


def test_one_alone_has_a_turn_each_minute() -> None:
    refreshing = Refreshing()
    assert [at for at in range(0, 130) if refreshing.is_due("g", float(at))] == [0, EACH, 2 * EACH]


def test_a_clock_that_is_put_back_holds_nothing_back() -> None:
    refreshing = Refreshing()
    assert refreshing.is_due("g", 5000.0)
    assert refreshing.is_due("g", 1000.0)


def test_what_is_kept_does_not_grow() -> None:
    refreshing = Refreshing()
    for step in range(100):
        assert refreshing.is_due(f"g{step}", step * PACE)
    assert len(refreshing._last) <= EACH / PACE
