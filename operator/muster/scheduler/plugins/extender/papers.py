"""Questions, written out.

A node with all its pods takes longer to write than many an extender to answer, and is shown again for each pod that
might go there. So what was written of a node is kept for as long as nothing on it changes, at most for a cycle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from muster.scheduler.plugins.extender.documents import node_document, task_document

if TYPE_CHECKING:
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.task import TaskInfo


class Papers:
    """What was written in this cycle."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[object, bytes]] = {}

    def clear(self) -> None:
        """The cycle is over."""
        self._nodes.clear()

    def node(self, node: NodeInfo) -> bytes:
        """A NodeInfo."""
        state = (
            node.used.key(),
            node.pipelined.key(),
            tuple([(uid, task.status.index) for uid, task in node.tasks.items()]),
        )
        known = self._nodes.get(node.name)
        if known is None or known[0] != state:
            known = self._nodes[node.name] = (state, written(node_document(node)))
        return known[1]


def written(document: Mapping[str, Any]) -> bytes:
    """JSON."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def task_paper(task: TaskInfo, node: str | None = None) -> bytes:
    """A TaskInfo; `node` stands in for that of a task which has just lost it."""
    return written(task_document(task, node))


def listed(papers: Iterable[bytes]) -> bytes:
    """A list of what is written already."""
    return b"[" + b",".join(papers) + b"]"


def together(**papers: bytes) -> bytes:
    """An object of what is written already."""
    return b"{" + b",".join(b'"' + name.encode() + b'":' + paper for name, paper in papers.items()) + b"}"
