"""A cycle's document as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Row = Sequence[str]


def cycle_tables(document: Mapping[str, Any]) -> str:
    """The tables that have rows, with an empty line between two."""
    tables = [
        _table(("BOUND POD", "NODE"), [(each["pod"], each["node"]) for each in document["bindings"]]),
        _table(
            ("EVICTED POD", "REASON", "BY"),
            [(each["pod"], each["reason"], each["by"]) for each in document["evictions"]],
        ),
        _table(("WAITS FOR ROOM ON", "POD"), [(each["node"], each["pod"]) for each in document["pipelined"]]),
        _table(("PODGROUP", "PHASE", "WAITS BECAUSE"), map(_pod_group, document["podGroups"].items())),
        _table(("QUEUE", "CAN'T BE USED BECAUSE"), list(_problems(document["queues"]))),
        _table(("QUEUE", "ALLOCATED", "DESERVED", "SHARE", "OVERUSED"), map(_queue, document["queues"].items())),
    ]
    return "\n\n".join(table for table in tables if table)


def _pod_group(entry: tuple[str, Mapping[str, Any]]) -> Row:
    key, group = entry
    reason = group["reason"]
    return (key, group["phase"] or "none", f"{reason['code']}: {reason['message']}" if reason else "-")


def _problems(queues: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    for name, queue in queues.items():
        problem = queue.get("problem")
        if problem is not None:
            yield name, f"{problem['code']}: {problem['message']}"


def _queue(entry: tuple[str, Mapping[str, Any]]) -> Row:
    name, queue = entry
    share, overused = queue["share"], queue["overused"]
    return (
        name,
        _amounts(queue["allocated"]),
        _amounts(queue["deserved"]),
        "-" if share is None else f"{share:.2f}",
        "-" if overused is None else str(overused).lower(),
    )


def _amounts(quantities: Mapping[str, str] | None) -> str:
    named = [f"{name} {quantity}" for name, quantity in (quantities or {}).items() if quantity != "0"]
    return ", ".join(named) or "-"


def _table(head: Row, rows: Iterable[Row]) -> str:
    """Left-aligned columns, the last one as long as it likes; empty without rows."""
    lines = [head, *rows]
    if len(lines) == 1:
        return ""
    widths = [max(len(line[column]) for line in lines) for column in range(len(head) - 1)]
    return "\n".join(
        "   ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]])
        for line in lines
    )
