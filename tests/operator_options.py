"""The options of an operator under test, said once."""

from __future__ import annotations

from typing import Any

from muster.app import Component, Options


def operator_options(**changes: Any) -> Options:
    """All components, no Lease, no health port and the usual times, but for these fields."""
    usual: dict[str, Any] = {
        "components": frozenset(Component),
        "kubeconfig": None,
        "scheduler_names": ("muster",),
        "scheduler_configuration": None,
        "submitter_image": "muster:test",
        "namespace": "muster-system",
        "pod_name": None,
        "leader_election": False,
        "health_port": 0,
        "gang_repair_timeout": 60.0,
        "admission_timeout": 300.0,
        "starvation_timeout": 600.0,
    }
    return Options(**{**usual, **changes})
