from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.controllers.clock import timestamp
from muster.controllers.dead_nodes import DeadNodes
from muster.controllers.raycluster.lost import LOOK_AGAIN_SECONDS, plan_lost
from muster.kube.objects import Node
from tests.controllers.fake_clock import FakeClock
from tests.controllers.observed_pods import NOW, pod

PATIENCE = 300.0


def node(name: str, status: str | None, silent: float | None) -> Node:
    ready = {"type": "Ready", "status": status}
    if silent is not None:
        ready["lastTransitionTime"] = timestamp(NOW - silent)
    conditions = [{"type": "MemoryPressure", "status": "Unknown"}, *([ready] if status else [])]
    return msgspec.convert({"metadata": {"name": name}, "status": {"conditions": conditions}}, Node)


class Nodes:
    """An informer of `node-1`, and of others that answer or are as silent."""

    def __init__(self, status: str | None, silent: float | None, *, answer: int = 1, as_silent: int = 0) -> None:
        self._nodes = [node("node-1", status, silent)]
        self._nodes += [node(f"well-{number}", "True", None) for number in range(answer)]
        self._nodes += [node(f"silent-{number}", "Unknown", silent) for number in range(as_silent)]

    def get(self, namespace: str | None, name: str) -> Node | None:
        return next((one for one in self._nodes if (namespace, name) == (None, one.metadata.name)), None)

    def list(self) -> list[Node]:
        return self._nodes


def planned(status: str | None, silent: float | None, **fields: Any) -> tuple[int, float | None]:
    """How many pods are taken away, and in how many seconds to look again."""
    nodes = DeadNodes(Nodes(status, silent), FakeClock(NOW), PATIENCE)  # type: ignore[arg-type]
    plan = plan_lost([pod("w1", **fields)], nodes, NOW)
    assert all(deletion.force for deletion in plan.delete)
    return len(plan.delete), None if plan.look_again is None else plan.look_again - NOW


@pytest.mark.parametrize(
    ("status", "silent", "fields", "expected"),
    [
        ("True", 1e6, {}, (0, None)),
        ("False", 1e6, {}, (0, None)),
        (None, None, {}, (0, None)),
        ("Unknown", None, {}, (0, None)),
        ("Unknown", 299, {}, (0, 1)),
        ("Unknown", 300, {}, (1, None)),
        ("Unknown", 1e6, {}, (1, None)),
        ("Unknown", 1e6, {"phase": "Pending"}, (1, None)),
        ("Unknown", 1e6, {"phase": "Unknown"}, (1, None)),
        ("Unknown", 1e6, {"phase": "Failed"}, (1, None)),
        ("Unknown", 1e6, {"node": None}, (0, None)),
        ("Unknown", 1e6, {"node": "gone"}, (0, None)),
        ("Unknown", 1e6, {"leaving": 20.0}, (1, None)),
        ("Unknown", 60, {"leaving": -29.0}, (0, 1)),
        ("Unknown", 60, {"leaving": -30.0}, (1, None)),
        ("True", 60, {"leaving": -1000.0}, (0, None)),
    ],
)
def test_a_pod_is_lost_when_its_node_has_been_silent_for_long_or_it_should_have_gone(
    status: str | None, silent: float | None, fields: dict[str, Any], expected: tuple[int, float | None]
) -> None:
    assert planned(status, silent, **fields) == expected


def test_it_is_told_why() -> None:
    nodes = DeadNodes(Nodes("Unknown", 400), FakeClock(NOW), PATIENCE)  # type: ignore[arg-type]
    (deletion,) = plan_lost([pod("w1"), pod("w2", node="node-2")], nodes, NOW).delete
    assert deletion.pod.metadata.name == "w1"
    assert deletion.why == "its node node-1 has not answered for 400 s"


@pytest.mark.parametrize(
    ("answer", "as_silent", "lost"),
    [(1, 0, 1), (1, 1, 1), (0, 0, 0), (0, 1, 0), (2, 2, 0), (3, 2, 1), (10, 10, 1), (8, 9, 0), (100, 100, 1)],
)
def test_where_most_nodes_are_silent_at_once_no_pod_is_lost(answer: int, as_silent: int, lost: int) -> None:
    nodes = DeadNodes(Nodes("Unknown", 1e6, answer=answer, as_silent=as_silent), FakeClock(NOW), PATIENCE)  # type: ignore[arg-type]
    plan = plan_lost([pod("w1")], nodes, NOW)
    assert len(plan.delete) == lost
    assert plan.look_again == (None if lost else NOW + LOOK_AGAIN_SECONDS)
