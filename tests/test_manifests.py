"""What `kubectl apply -k manifests/base` installs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

BASE = Path(__file__).parents[1] / "manifests" / "base"
SLOW_START_SECONDS = 300


def container() -> dict[str, Any]:
    deployment = yaml.safe_load((BASE / "deployment.yaml").read_text())
    (ours,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(ours)


def test_every_file_of_the_base_is_applied() -> None:
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(path.name for path in BASE.glob("*.yaml") if path.name != "kustomization.yaml")


def test_an_operator_that_starts_slowly_is_not_killed_for_it() -> None:
    probes = container()
    startup, liveness = probes["startupProbe"], probes["livenessProbe"]
    assert startup["httpGet"] == liveness["httpGet"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= SLOW_START_SECONDS
    # Readiness is not asked before the startup probe has succeeded: a long period would put it off.
    assert startup["periodSeconds"] <= probes["readinessProbe"]["periodSeconds"]
