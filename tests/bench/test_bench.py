"""The whole benchmark, in small, on a real API server: what it counts, and what it says of systems that fail."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from bench.load import GANGS
from bench.measuring import Patience, measure
from bench.results import API_SERVER, ETCD, SYSTEM, Result
from bench.scenarios import Mode, Scenario
from bench.systems import System, parse
from tests.cluster.control_plane import ControlPlane
from tests.cluster.process import Background
from tests.integration.gang_objects import eventually

pytestmark = pytest.mark.control_plane

SMALL = Scenario("small", "two gangs of three", nodes=2, gangs=2, size=3)
PATIENCE = Patience(start=300.0, stall=300.0, settle=0.5, calm=1.0)


def stand_in(name: str, options: str) -> str:
    command = f"{sys.executable} -m tests.bench.stand_in --kubeconfig {{kubeconfig}} {options}"
    return f"name={name} schedulerName=bench command='{command}'"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane.start() as started:
        yield started


@pytest.fixture
def clean(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Without the pods of the run before."""
    yield plane
    plane.api.delete(f"/api/v1/namespaces/{GANGS}/pods")


def run(plane: ControlPlane, system: System, patience: Patience) -> Result:
    return asyncio.run(measure(plane, SMALL, Mode.DRAIN, system, pace=10.0, patience=patience))


def test_the_ceiling_is_counted_with_all_it_uses(clean: ControlPlane) -> None:
    result = run(clean, parse("ceiling"), PATIENCE)
    assert (result.census.bound, result.census.whole, result.census.partial) == (6, 2, 0)
    assert result.faults == ()
    assert result.writes == {"PATCH pods": 6, "POST pods/binding": 6}
    assert result.usage.keys() == {SYSTEM, API_SERVER, ETCD}
    assert all(used.cpu > 0 and used.peak > 10 for used in result.usage.values())
    assert result.rate is not None
    assert result.latencies == (), "the pods were there before it started"


def test_a_gang_that_is_bound_in_part_is_told(clean: ControlPlane) -> None:
    patience = dataclasses.replace(PATIENCE, stall=3.0)
    result = run(clean, parse(stand_in("partial", "--bind 4")), patience)
    assert (result.census.bound, result.census.whole, result.census.partial) == (4, 1, 1)
    assert result.faults == ("left 2 of 6 pods unbound", "1 gangs bound in part")


def test_a_system_that_never_binds_is_told(clean: ControlPlane) -> None:
    patience = dataclasses.replace(PATIENCE, start=1.0)
    result = run(clean, parse(stand_in("idle", "--bind 0")), patience)
    assert result.faults == ("bound nothing",)
    assert result.census.unbound == 6


async def test_an_api_server_that_ends_is_told_at_once(clean: ControlPlane) -> None:
    running = asyncio.create_task(
        measure(clean, SMALL, Mode.DRAIN, parse(stand_in("idle", "--bind 0")), pace=10.0, patience=PATIENCE)
    )
    try:
        await eventually(lambda: Background(clean.folder, "system-idle").pid is not None, "the system runs", 60.0)
        await asyncio.to_thread(clean.stop_api_server)
        async with asyncio.timeout(60):
            result = await running
    finally:
        await asyncio.to_thread(clean.restart_api_server)
    assert len(result.faults) == 1
    assert result.faults[0].startswith("kube-apiserver ")
    assert " after " in result.faults[0]
    assert result.census.bound == 0


def test_the_next_has_its_turn_after_one_that_died(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "runs.jsonl"
    scenario = ("--scenario", "100x3", "--mode", "stream", "--scale", "0.02")
    wanted = (*scenario, "--runs", "1", "--no-ceiling", "--start", "300", "--stall", "300")
    # Its first pod only shows that it runs. To wait for what it leaves would take longer than this test may.
    dying = stand_in("dying", "--bind 3 --end 7")
    arguments = [*wanted, "--system", dying, "--system", "muster", "--output", str(output)]
    assert main(arguments) == 0
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["record"] for line in lines] == ["conditions", "run", "run", "median", "median"]
    check_dead(lines[1])
    check_muster(lines[2])
    table = capsys.readouterr().out
    assert "| muster | 6 of 6 | 0 |" in table
    assert "dying ended with status 7" in table


def check_dead(run: dict[str, Any]) -> None:
    assert (run["system"], run["expected"]) == ("dying", 6)
    assert run["bound"] < 6
    assert "dying ended with status 7 after" in run["faults"][0]
    assert run["faults"][0].endswith("this is how it ends")


def check_muster(run: dict[str, Any]) -> None:
    counted = {name: run[name] for name in ("system", "bound", "unbound", "whole", "partial", "overcommitted")}
    assert counted == {"system": "muster", "bound": 6, "unbound": 0, "whole": 2, "partial": 0, "overcommitted": 0}
    assert run["faults"] == []
    assert len(run["latencies"]) == 2
    assert run["writes"]["POST pods/binding"] == 6
