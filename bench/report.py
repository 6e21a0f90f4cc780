"""Results for people and for programs: a table in Markdown, and JSON, one object a line."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.results import PROCESSES, QUANTILES, Result, Summary
from bench.scenarios import Mode, Scenario
from tests.cluster import versions

HEAD = (
    "system",
    "bound",
    "partial",
    "pods/s",
    "of ceiling",
    "p50 / p90 / p99 ms",
    "CPU ms a pod: system / API server / etcd",
    "peak MiB",
    "writes a pod",
    "remarks",
)


def table(summaries: Mapping[str, Summary], ceilings: Mapping[str, str], mode: Mode) -> str:
    """A row for each system, by its name; `ceilings` names the system whose rate is a system's ceiling."""
    rows = [_cells(name, each, summaries.get(ceilings.get(name, "")), mode) for name, each in summaries.items()]
    lines = [HEAD, tuple("-" * 3 for _ in HEAD), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(name: str, summary: Summary, ceiling: Summary | None, mode: Mode) -> tuple[str, ...]:
    rated = mode is not Mode.PACED  # then the rate is that of the arrivals
    share = summary.rate / ceiling.rate if rated and summary.rate and ceiling and ceiling.rate else None
    return (
        name,
        f"{summary.bound} of {summary.expected}",
        str(summary.partial),
        _number(summary.rate if rated else None, 0),
        f"{share:.0%}" if share is not None else "-",
        " / ".join(_number(summary.quantiles[percent], 0, 1000) for percent in QUANTILES),
        " / ".join(_number(summary.cpu_a_pod[each], 2, 1000) for each in PROCESSES),
        " / ".join(_number(summary.peak[each], 0) for each in PROCESSES),
        _number(summary.writes_a_pod, 2),
        "; ".join(summary.faults).replace("|", "\\|").replace("\n", " "),
    )


def _number(value: float | None, digits: int, factor: float = 1.0) -> str:
    return "-" if value is None else f"{value * factor:,.{digits}f}"


def run_line(scenario: Scenario, mode: Mode, system: str, number: int, result: Result) -> str:
    """One run as a line of JSON; times in seconds, memory in MiB."""
    return json.dumps(
        {
            "record": "run",
            "scenario": scenario.name,
            "mode": mode.value,
            "system": system,
            "run": number,
            "nodes": scenario.nodes,
            "gangs": scenario.gangs,
            "size": scenario.size,
            "expected": result.expected,
            **asdict(result.census),
            "during": result.during,
            "seconds": result.seconds,
            "rate": result.rate,
            **{f"p{percent}": result.quantile(percent) for percent in QUANTILES},
            "latencies": [round(latency, 6) for latency in result.latencies],
            "cpu": {name: used.cpu for name, used in result.usage.items()},
            "peak": {name: used.peak for name, used in result.usage.items()},
            "writes": dict(result.writes),
            "writes_a_pod": result.writes_a_pod,
            "faults": list(result.faults),
        }
    )


def summary_line(scenario: Scenario, mode: Mode, system: str, summary: Summary) -> str:
    """The median of some runs as a line of JSON."""
    figures = {"record": "median", "scenario": scenario.name, "mode": mode.value, "system": system, **asdict(summary)}
    return json.dumps(figures)


def conditions(arguments: Sequence[str]) -> dict[str, Any]:
    """Where and with what the runs are made."""
    return {
        "record": "conditions",
        "arguments": list(arguments),
        "processor": _processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "kubernetes": versions.KUBERNETES,
        "etcd": versions.ETCD,
        "commit": _commit(),
        "load": os.getloadavg()[0],
    }


def conditions_text(found: Mapping[str, Any]) -> str:
    """The same in a line for people."""
    return (
        f"{found['cpus']} CPUs ({found['processor']}), {found['memory_mib'] // 1024} GiB, Linux {found['kernel']}, "
        f"Python {found['python']}, Kubernetes {found['kubernetes']}, etcd {found['etcd']}, "
        f"commit {found['commit']}, load {found['load']:.1f}"
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str:
    """The commit that is checked out, with a + where files differ from it; "unknown" without Git."""
    command = ["git", "describe", "--always", "--dirty=+"]
    folder = Path(__file__).parent
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def say(text: str) -> None:
    """Print a result at once, also into a pipe."""
    print(text, file=sys.stdout, flush=True)
