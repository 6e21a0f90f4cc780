"""Both measurements as they are run, small: the counts are right, and what goes wrong is told. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.standing import program
from bench.standing.__main__ import main

_CLUSTER = ("--nodes", "4", "--patience", "300")
_START = ("start", *_CLUSTER, "--pods", "40", "--after", "0.5")
_REST = ("rest", *_CLUSTER, "--pods", "30", "--gangs", "3", "--seconds", "6", "--intervals", "2", "--settle", "3")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["start", "--nodes", "2", "--pods", "51"], "a node has room for 25"),
        (["rest", "--pods", "5", "--gangs", "2"], "2 gangs have 6"),
        (["rest", "--seconds", "0"], "--seconds"),
        (["start", "--runs", "0"], "--runs"),
    ],
)
def test_what_can_not_be_measured_is_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(options)
    assert words in capsys.readouterr().err


@pytest.mark.control_plane
def test_starts_take_turns_and_one_that_dies_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, results = _run(tmp_path, *_START, "--components", "nonsense", "--components", program.WHOLE)
    dead, good = results
    assert status == 1
    (words,) = dead["trouble"]
    assert words.startswith("muster has ended with status 2: ")
    assert (dead["first"], dead["later"]) == (None, None)
    assert (good["components"], good["trouble"]) == (program.WHOLE, [])
    assert 0 < good["first"] <= good["gang"]
    assert 0 < good["at_first"]["cpu"] <= good["later"]["cpu"]
    assert 10 < good["at_first"]["peak_mib"] <= good["later"]["peak_mib"]
    assert "FAILED: muster has ended with status 2" in capsys.readouterr().out


@pytest.mark.control_plane
def test_the_scheduler_alone_starts_twice_on_one_cluster(tmp_path: Path) -> None:
    status, results = _run(tmp_path, *_START, "--components", "scheduler", "--runs", "2")
    assert (status, [result["run"] for result in results]) == (0, [0, 1])
    assert all(result["gang"] for result in results)


@pytest.mark.control_plane
def test_at_rest_nothing_is_written_but_leases(tmp_path: Path) -> None:
    status, (result,) = _run(tmp_path, *_REST)
    assert (status, result["trouble"]) == (0, [])
    assert len(result["intervals"]) == 2
    assert result["whole"]["writes"].keys() == {"PUT leases"}
    assert result["beginning"]["resident_mib"] > 10


@pytest.mark.control_plane
def test_one_that_dies_before_its_rest_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MUSTER_COMMAND", ("sh", "-c", "echo no more; exit 3", "sh"))
    status, (result,) = _run(tmp_path, *_REST)
    assert status == 1
    assert result["trouble"] == ["0 of 3 are there, and muster has ended with status 3: no more"]
    assert (result["beginning"], result["whole"]) == (None, None)


def _run(folder: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit status, and what stands in the lines of JSON."""
    file = folder / "results.jsonl"
    status = main([*options, "--json", str(file)])
    return status, [json.loads(line) for line in file.read_text().splitlines()]
