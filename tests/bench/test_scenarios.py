"""How scenarios are made smaller, and what has room in them."""

from __future__ import annotations

import pytest

from bench.scenarios import SCENARIOS, Mode, Scenario, scenario


@pytest.mark.parametrize(
    ("name", "factor", "nodes", "gangs", "size"),
    [
        ("1000x3", 1.0, 1000, 1000, 3),
        ("1000x3", 0.01, 10, 10, 3),
        ("1000x3", 2.0, 2000, 2000, 3),
        ("10x100", 0.5, 500, 5, 100),
        ("10x100", 0.05, 50, 1, 50),  # the last gang shrinks
        ("1x1000", 0.01, 10, 1, 10),
        ("contention", 0.001, 2, 2, 16),  # with fewer there would be no half that fits
        ("parked", 0.001, 5, 1, 3),
    ],
)
def test_a_scenario_scales_with_its_pods(name: str, factor: float, nodes: int, gangs: int, size: int) -> None:
    scaled = scenario(name).scaled(factor)
    assert (scaled.nodes, scaled.gangs, scaled.size) == (nodes, gangs, size)


@pytest.mark.parametrize("factor", [0.01, 0.07, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("each", SCENARIOS, ids=lambda each: each.name)
def test_there_is_room_for_a_gang_at_every_scale(each: Scenario, factor: float) -> None:
    scaled = each.scaled(factor)
    assert scaled.fitting >= 1
    assert scaled.all_fit == (each.name not in ("contention", "parked", "churn"))


def test_half_of_the_gangs_fit_where_they_contend() -> None:
    assert scenario("contention").fitting == 50


def test_so_many_parked_gangs_leave_room_for_all_that_arrive() -> None:
    parked = scenario("parked")
    assert parked.fitting == parked.gangs
    assert parked.running < parked.node_cpu, "a parked gang asks for a whole node, and none is empty"


def test_fewer_gangs_come_when_they_are_paced() -> None:
    assert scenario("large").in_mode(Mode.PACED).gangs == 100
    assert scenario("large").in_mode(Mode.STREAM).gangs == 1000


def test_an_unknown_scenario_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"'2x2' is no scenario; there are 100x3, 1000x3, .*large"):
        scenario("2x2")
