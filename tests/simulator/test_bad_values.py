"""Whatever stands in a field: it is refused as bad input, or the cycles run. Nothing else comes out."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.scheduler.conf import DEFAULT
from muster.simulator.input_error import InputError
from muster.simulator.manifests import read_manifests
from muster.simulator.model import build_model
from muster.simulator.report import cycle_document
from muster.simulator.simulation import Pace, Simulation
from muster.simulator.sources import read_sources
from tests.simulator.manifests import Manifest, node, pod, pod_group, priority_class, queue

REQUEST = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
CLUSTER: list[Manifest] = [
    {**node("n1", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}], unschedulable=False)},
    queue("q", weight=1, capability={"cpu": "9"}, guarantee={"resource": {"cpu": "1"}}, parent="root", priority=1),
    priority_class("high", 1000, default=True, policy="Never"),
    pod_group("g", 1, queue="q", minResources={"cpu": "1"}, minTaskMember={"": 1}, priorityClassName="high"),
    pod(
        "p",
        "g",
        runtime="90s",
        annotations={"volcano.sh/task-priority": "3", "volcano.sh/preemptable": "true"},
        status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
        containers=[{"name": "c", "resources": REQUEST, "ports": [{"containerPort": 80, "hostPort": 80}]}],
        tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
        affinity={
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}},
        },
    ),
    pod("old", "g", node="n1", deleted=True, metadata={"creationTimestamp": "2026-01-01T00:00:00Z"}),
]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["-1", "1e400", "0", "9" * 40, "10Gi", "true", "2026-01-01T00:00:00Z", -1, 2**63, 2**31, "root"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["cpu", "key", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


PATHS = list(paths(CLUSTER))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=200)
@given(st.sampled_from(PATHS), JUNK)
def test_a_field_with_anything_in_it_is_refused_or_understood(tmp_path: Path, path: tuple[Any, ...], junk: Any) -> None:
    manifests = copy.deepcopy(CLUSTER)
    target: Any = manifests
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = junk
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    run(file)


def run(file: Path) -> None:
    try:
        model = build_model(read_manifests(read_sources([str(file)]).documents), ("muster",))
    except InputError:
        return
    simulation = Simulation(model, DEFAULT, Pace(1767268800.0))
    for _ in range(3):
        cycle_document(simulation.cycle(), model.cache, simulation.inquiry())
        simulation.advance()


@pytest.mark.parametrize("field", ["creationTimestamp", "deletionTimestamp"])
def test_a_time_beyond_all_years_is_refused(tmp_path: Path, field: str) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(pod("p", metadata={field: "9999-12-31T23:59:59-23:59"})))
    with pytest.raises(InputError, match=f"metadata.{field}"):
        build_model(read_manifests(read_sources([str(file)]).documents), ("muster",))
