"""The benchmark as it is run, small: the counts are right, and what goes wrong is told. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.controllers.__main__ import main, turns
from bench.controllers.scenario import Kind, Scenario
from bench.controllers.systems import CEILING, KUBERAY, MUSTER

_SMALL = ("--count", "3", "--nodes", "2", "--runs", "1", "--settle", "0.5", "--quiet", "1", "--patience", "300")


def test_systems_take_turns_in_alternating_order_and_jobs_have_no_ceiling() -> None:
    clusters, jobs = Scenario(Kind.CLUSTERS, 1), Scenario(Kind.JOBS, 1)
    assert list(turns([clusters, jobs], [CEILING, MUSTER, KUBERAY], 2)) == [
        *((clusters, system, 0) for system in (CEILING, MUSTER, KUBERAY)),
        *((clusters, system, 1) for system in (KUBERAY, MUSTER, CEILING)),
        *((jobs, system, 0) for system in (MUSTER, KUBERAY)),
        *((jobs, system, 1) for system in (KUBERAY, MUSTER)),
    ]


@pytest.mark.control_plane
def test_a_system_that_dies_is_told_at_once_and_the_next_has_its_turn(tmp_path: Path) -> None:
    """At once: were it told when the patience is at an end, the result would speak of that."""
    dies = ["--system", "dies=sh -c 'echo no more; exit 1'"]
    status, (dead, ceiling) = _run(tmp_path, "clusters", *dies, "--systems", "ceiling")
    assert status == 1
    assert dead["trouble"] == ["0 of 1 are there, and dies has ended with status 1: no more"]
    assert (ceiling["system"], ceiling["trouble"]) == ("ceiling", [])
    made = ceiling["figures"]["writes_by_kind"]
    assert (made["POST pods"], made["POST pods/binding"], made["POST services"]) == (3, 3, 1)


@pytest.mark.control_plane
def test_muster_completes_all_jobs_each_submitted_once_and_makes_no_pod_too_many(tmp_path: Path) -> None:
    status, (result,) = _run(tmp_path, "jobs", "--systems", "muster", "--job-seconds", "1")
    assert (status, result["trouble"]) == (0, [])
    assert (result["scenario"], result["system"], result["count"]) == ("jobs", "muster", 3)
    made = result["figures"]["writes_by_kind"]
    assert (made["POST rayclusters"], made["POST pods"], made["POST pods/binding"]) == (1, 3, 3)
    assert result["figures"]["plane"].keys() == {"kube-apiserver", "etcd", "kwok", "ray-heads"}
    assert result["figures"]["system"]["muster"]["peak_mib"] > 0
    assert result["figures"]["questions"] > 0


def _run(folder: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit status, and what stands in the lines of JSON."""
    file = folder / "results.jsonl"
    status = main([*options, *_SMALL, "--json", str(file)])
    return status, [json.loads(line) for line in file.read_text().splitlines()]
