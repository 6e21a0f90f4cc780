"""A simulation of manifests, as the command builds it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.scheduler.conf import DEFAULT, SchedulerConfiguration
from muster.simulator.manifests import read_manifests
from muster.simulator.model import build_model
from muster.simulator.report import cycle_document
from muster.simulator.simulation import Pace, Simulation
from muster.simulator.sources import read_sources
from tests.simulator import manifests

Simulate = Callable[..., list[dict[str, Any]]]
NOW = 1767268800.0
"""2026-01-01T12:00:00Z"""


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """The documents of so many cycles, 10 seconds apart."""

    def run(
        *objects: manifests.Manifest | list[manifests.Manifest],
        cycles: int = 1,
        grace: int = 1,
        configuration: SchedulerConfiguration = DEFAULT,
    ) -> list[dict[str, Any]]:
        file = tmp_path / "cluster.yaml"
        file.write_bytes(manifests.text(*objects))
        model = build_model(read_manifests(read_sources([str(file)]).documents), ("muster", "volcano"))
        simulation = Simulation(model, configuration, Pace(NOW, 10, grace))
        documents = []
        for number in range(cycles):
            if number:
                simulation.advance()
            documents.append(cycle_document(simulation.cycle(), simulation.model.cache, simulation.inquiry()))
        return documents

    return run


def bound(document: dict[str, Any]) -> dict[str, str]:
    """Pod to node, the namespace `default` left out."""
    return {each["pod"].removeprefix("default/"): each["node"] for each in document["bindings"]}
