"""The counts of neighbours, worked out again from the tasks alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from muster.scheduler.cache import SchedulerCache
from muster.scheduler.neighbours import Selection
from muster.scheduler.specs import TaskStatus
from muster.scheduler.tally import SpreadTally, Tally
from muster.scheduler.task import TaskInfo
from tests.scheduler.plain_predicates import selects


def audit_neighbours(cache: SchedulerCache, tasks: list[TaskInfo]) -> None:
    """Fail where an incremental count differs from the recomputed one."""
    neighbours = cache.neighbours
    selections = list(neighbours._selections.values())
    for selection in selections:
        _audit_selection(cache, selection, tasks)
    for task in tasks:
        expected = {each.id for each in selections if _matches(each, task)}
        assert {each.id for each in task.shape.matched} == expected, task
        assert task.identity.tasks[task.uid] is task
        assert neighbours._identities[task.identity.key] is task.identity


def _matches(selection: Selection, task: TaskInfo) -> bool:
    return all(selects(each, task.spec) for each in selection.selectors)


def _audit_selection(cache: SchedulerCache, selection: Selection, tasks: list[TaskInfo]) -> None:
    assert selection.users > 0
    chosen = [task for task in tasks if _matches(selection, task)]
    for tally in selection.tallies.values():
        _audit_tally(cache, tally, dict.fromkeys(chosen, 1), lambda node, key: node.labels.get(key))
    for key, tally in selection.guards.items():
        amounts = {task: _terms(task, selection, key) for task in tasks}
        _audit_tally(cache, tally, amounts, lambda node, key: node.labels.get(key))
    for key, tally in selection.wishes.items():
        amounts = {task: _weights(task, selection, key) for task in tasks}
        _audit_tally(cache, tally, amounts, lambda node, key: node.labels.get(key))
    for spread in selection.spreads.values():
        _audit_spread(cache, spread, chosen)


def _terms(task: TaskInfo, selection: Selection, key: str) -> int:
    company = task.spec.scheduling.company
    terms = company.anti_affinity if company else ()
    return sum((term.pods,) == selection.selectors and term.topology_key == key for term in terms)


def _weights(task: TaskInfo, selection: Selection, key: str) -> int:
    company = task.spec.scheduling.company
    return sum(
        each.weight
        for each in (company.preferred if company else ())
        if (each.term.pods,) == selection.selectors and each.term.topology_key == key
    )


def _audit_tally(
    cache: SchedulerCache, tally: Tally, amounts: dict[TaskInfo, int], domain_of: Callable[[Any, str], str | None]
) -> None:
    staying: Counter[str] = Counter()
    leaving: Counter[str] = Counter()
    coming: Counter[str] = Counter()
    for task, amount in amounts.items():
        node = cache.nodes.get(task.node) if task.node is not None else None
        domain = domain_of(node, tally.key) if node is not None and node.spec is not None else None
        if domain is None or not amount:
            continue
        if task.status is TaskStatus.PIPELINED:
            coming[domain] += amount
        elif task.leaves or (task.status is TaskStatus.RELEASING and isinstance(tally, SpreadTally)):
            leaving[domain] += amount
        elif task.status.holds:
            staying[domain] += amount
    for ledger, expected in ((tally.staying, staying), (tally.leaving, leaving), (tally.coming, coming)):
        assert ledger == {domain: count for domain, count in expected.items() if count}


def _audit_spread(cache: SchedulerCache, tally: SpreadTally, chosen: list[TaskInfo]) -> None:
    known = [node for node in cache.nodes.values() if node.spec is not None]
    part = {node.name: node.labels[tally.key] for node in known if tally._takes_part(node)}
    assert tally.sizes == Counter(part.values())
    _audit_tally(cache, tally, dict.fromkeys(chosen, 1), lambda node, _: part.get(node.name))
    assert tally._levels == Counter(tally.staying.get(domain, 0) for domain in tally.sizes)


def neighbours_snapshot(cache: SchedulerCache) -> object:
    """All counts as comparable values."""
    return {
        (selection.id, kind, key): (dict(tally.staying), dict(tally.leaving), dict(tally.coming))
        for selection in cache.neighbours._selections.values()
        for kind in ("tallies", "guards", "wishes", "spreads")
        for key, tally in getattr(selection, kind).items()
    }
