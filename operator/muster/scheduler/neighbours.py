"""Who is whose neighbour: the counts by which pods ask for, or keep away from, each other's company.

Pods with equal namespace and labels share one `Identity`. A `Selection` is what terms select; it knows the identities
that it matches, and so each shape of task knows the selections that its pods are counted in (`Shape.matched`). Only
selections that some shape asks for exist: where nobody asks for company, nothing is counted.

The counts change in `count`, which the accounts call whenever a task takes or leaves a place, whichever way that
came: so a Statement is undone here as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.scheduler.company import Company, SpreadConstraint
from muster.scheduler.constraints import HARD_EFFECTS, PodConstraints
from muster.scheduler.node import NodeInfo
from muster.scheduler.selectors import PodSelector
from muster.scheduler.tally import SpreadTally, Tally

if TYPE_CHECKING:
    from muster.scheduler.task import TaskInfo

NAMESPACE_NAME = "kubernetes.io/metadata.name"


class Identity:
    """Pods that no selector can tell apart."""

    __slots__ = ("key", "labels", "namespace", "selections", "tasks")

    def __init__(self, key: object, namespace: str, labels: Mapping[str, str]) -> None:
        self.key = key
        self.namespace = namespace
        self.labels = labels
        self.selections: tuple[Selection, ...] = ()
        self.tasks: dict[str, TaskInfo] = {}


class Selection:
    """The pods that all of some selectors match.

    `tallies` count them by topology key, for affinity. `spreads` count them for spread constraints. `guards` count
    the pods that refuse their company (anti-affinity), `wishes` add up the weights of those that would rather have it.
    """

    __slots__ = ("guards", "id", "identities", "selectors", "spreads", "tallies", "users", "wishes")

    def __init__(self, selection_id: int, selectors: tuple[PodSelector, ...]) -> None:
        self.id = selection_id
        self.selectors = selectors
        self.users = 0
        self.identities: dict[Identity, None] = {}
        self.tallies: dict[str, Tally] = {}
        self.guards: dict[str, Tally] = {}
        self.wishes: dict[str, Tally] = {}
        self.spreads: dict[object, SpreadTally] = {}

    def counting(self) -> Iterable[Tally]:
        """The tallies that count the selected pods."""
        yield from self.tallies.values()
        yield from self.spreads.values()

    def drop_unused(self) -> None:
        """Forget the tallies that no shape needs any more."""
        self.tallies = {key: tally for key, tally in self.tallies.items() if tally.users}
        self.guards = {key: tally for key, tally in self.guards.items() if tally.users}
        self.wishes = {key: tally for key, tally in self.wishes.items() if tally.users}
        self.spreads = {key: tally for key, tally in self.spreads.items() if tally.users}


@dataclass(slots=True)
class Ties:
    """What one kind of pod asks of its neighbours, ready to be looked up.

    `company` is the selection that all terms of affinity make, `owned` the guards and wishes of its own, with the
    weight of each.
    """

    company: Selection | None
    affinity: tuple[Tally, ...]
    anti_affinity: tuple[Tally, ...]
    preferred: tuple[tuple[int, Tally], ...]
    spread: tuple[tuple[SpreadConstraint, Selection, SpreadTally], ...]
    owned: tuple[tuple[Tally, int], ...]
    selections: tuple[Selection, ...]
    users: int = 0


class Neighbours:
    """All identities, selections and counts. `nodes` are the accounts' nodes, by name.

    `rematched` is called for each task whose identity is matched by other selections than before.
    """

    def __init__(self, nodes: Mapping[str, NodeInfo], rematched: Callable[[TaskInfo], None]) -> None:
        self._nodes = nodes
        self._rematched = rematched
        self._identities: dict[object, Identity] = {}
        self._selections: dict[tuple[PodSelector, ...], Selection] = {}
        self._ties: dict[PodConstraints, Ties] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._next_id = 0

    # --- pods ---

    def identity(self, namespace: str, labels: Mapping[str, str]) -> Identity:
        """The identity of a pod."""
        key = (namespace, tuple(sorted(labels.items())))
        found = self._identities.get(key)
        if found is None:
            found = self._identities[key] = Identity(key, namespace, labels)
            for selection in self._selections.values():
                if self._selects(selection, found):
                    selection.identities[found] = None
                    found.selections = (*found.selections, selection)
        return found

    def enrol(self, task: TaskInfo) -> None:
        """The task exists."""
        task.identity.tasks[task.uid] = task

    def strike(self, task: TaskInfo) -> None:
        """The task exists no more, or is replaced by one of the same uid."""
        identity = task.identity
        if identity.tasks.get(task.uid) is task:
            del identity.tasks[task.uid]
        if not identity.tasks:
            self._identities.pop(identity.key, None)
            for selection in identity.selections:
                selection.identities.pop(identity, None)

    def count(self, task: TaskInfo, node: NodeInfo, sign: int) -> None:
        """The task takes (1) or leaves (-1) its place on the node."""
        shape = task.shape
        for selection in shape.matched:
            for tally in selection.counting():
                tally.add(node, task, sign)
        if shape.ties is not None:
            for tally, weight in shape.ties.owned:
                tally.add(node, task, sign * weight)

    def selections(self) -> AbstractSet[Selection]:
        """All of them."""
        return set(self._selections.values())

    # --- nodes and namespaces ---

    def node_leaves(self, node: NodeInfo) -> None:
        """The node's labels and taints are about to change, or it is gone: count nothing on it."""
        if self._selections:
            self._count_all_on(node, -1)
            for tally in self._spread_tallies():
                tally.leave(node)

    def node_joins(self, node: NodeInfo) -> None:
        """The node is what it is now: count what is on it."""
        if self._selections:
            for tally in self._spread_tallies():
                tally.join(node)
            self._count_all_on(node, 1)

    def _count_all_on(self, node: NodeInfo, sign: int) -> None:
        for task in node.tasks.values():
            if task.shape.counted:
                self.count(task, node, sign)

    def _spread_tallies(self) -> Iterable[SpreadTally]:
        for selection in self._selections.values():
            yield from selection.spreads.values()

    def set_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """The labels of a namespace; None when it is gone (or not known)."""
        if labels is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = labels
        for identity in [each for each in self._identities.values() if each.namespace == name]:
            chosen = tuple(each for each in self._selections.values() if self._selects(each, identity))
            if set(chosen) != set(identity.selections):
                for selection in identity.selections:
                    selection.identities.pop(identity, None)
                for selection in chosen:
                    selection.identities[identity] = None
                self._rematch(identity, chosen)

    # --- shapes ---

    def tie(self, scheduling: PodConstraints) -> Ties | None:
        """What a shape with these constraints asks of its neighbours; counted from now on, until `untie`."""
        company = scheduling.company
        if company is None:
            return None
        ties = self._ties.get(scheduling)
        if ties is None:
            ties = self._ties[scheduling] = self._make_ties(scheduling, company)
        return ties

    def untie(self, scheduling: PodConstraints) -> None:
        """One shape fewer has these constraints."""
        ties = self._ties.get(scheduling)
        if ties is None:
            return
        ties.users -= 1
        if ties.users > 0:
            return
        del self._ties[scheduling]
        for tally in (*ties.affinity, *ties.anti_affinity, *(each for _, each in ties.preferred)):
            tally.users -= 1
        for tally in (*(each for _, _, each in ties.spread), *(each for each, _ in ties.owned)):
            tally.users -= 1
        for selection in ties.selections:
            self._give_back(selection)

    def _make_ties(self, scheduling: PodConstraints, company: Company) -> Ties:
        taken: list[Selection] = []

        def select(*selectors: PodSelector) -> Selection:
            taken.append(self._take(selectors))
            return taken[-1]

        everybody = select(*sorted({each.pods for each in company.affinity}, key=repr)) if company.affinity else None
        refused = [(select(term.pods), term.topology_key) for term in company.anti_affinity]
        wished = [(each.weight, select(each.term.pods), each.term.topology_key) for each in company.preferred]
        spread = [(each, select(each.pods)) for each in company.spread]
        guards = [(_join(selection.guards, key, Tally), 1) for selection, key in refused]
        wishes = [(_join(selection.wishes, key, Tally), weight) for weight, selection, key in wished]
        return Ties(
            company=everybody,
            affinity=tuple(self._tally(everybody, each.topology_key) for each in company.affinity if everybody),
            anti_affinity=tuple(self._tally(selection, key) for selection, key in refused),
            preferred=tuple((weight, self._tally(selection, key)) for weight, selection, key in wished),
            spread=tuple(
                (each, selection, self._spread_tally(selection, each, scheduling, company))
                for each, selection in spread
            ),
            owned=(*guards, *wishes),
            selections=tuple(taken),
        )

    def _take(self, selectors: tuple[PodSelector, ...]) -> Selection:
        selection = self._selections.get(selectors)
        if selection is None:
            self._next_id += 1
            selection = self._selections[selectors] = Selection(self._next_id, selectors)
            for identity in list(self._identities.values()):
                if self._selects(selection, identity):
                    selection.identities[identity] = None
                    self._rematch(identity, (*identity.selections, selection))
        selection.users += 1
        return selection

    def _give_back(self, selection: Selection) -> None:
        selection.users -= 1
        selection.drop_unused()
        if not selection.users:
            del self._selections[selection.selectors]
            for identity in list(selection.identities):
                self._rematch(identity, tuple(each for each in identity.selections if each is not selection))

    def _rematch(self, identity: Identity, selections: tuple[Selection, ...]) -> None:
        identity.selections = selections
        for task in list(identity.tasks.values()):
            self._rematched(task)

    def _selects(self, selection: Selection, identity: Identity) -> bool:
        namespace = identity.namespace
        # The API server gives every namespace this label.
        labels = {NAMESPACE_NAME: namespace, **self._namespaces.get(namespace, {})}
        return all(each.matches(namespace, identity.labels, labels) for each in selection.selectors)

    def _tally(self, selection: Selection, key: str) -> Tally:
        new = key not in selection.tallies
        tally = _join(selection.tallies, key, Tally)
        if new:
            self._fill(tally, selection)
        return tally

    def _spread_tally(
        self, selection: Selection, constraint: SpreadConstraint, scheduling: PodConstraints, company: Company
    ) -> SpreadTally:
        keys = frozenset(each.topology_key for each in company.spread if each.hard is constraint.hard)
        node_selector, required, tolerations = scheduling.node_selector, scheduling.required, scheduling.tolerations
        only = PodConstraints(
            node_selector=node_selector if constraint.honor_affinity else (),
            required=required if constraint.honor_affinity else None,
            tolerations=tolerations if constraint.honor_taints else (),
        )
        key = (constraint.topology_key, keys, only, constraint.honor_taints)
        tally = selection.spreads.get(key)
        if tally is None:
            rule = _participation(keys, only, honor_taints=constraint.honor_taints)
            tally = selection.spreads[key] = SpreadTally(constraint.topology_key, rule)
            for node in self._nodes.values():
                tally.join(node)
            self._fill(tally, selection)
        tally.users += 1
        return tally

    def _fill(self, tally: Tally, selection: Selection) -> None:
        for identity in selection.identities:
            for task in identity.tasks.values():
                if task.node is not None and not task.status.finished and task.node in self._nodes:
                    tally.add(self._nodes[task.node], task, 1)


def _join(shelf: dict[str, Tally], key: str, make: Callable[[str], Tally]) -> Tally:
    tally = shelf.get(key)
    if tally is None:
        tally = shelf[key] = make(key)
    tally.users += 1
    return tally


def _participation(keys: frozenset[str], only: PodConstraints, *, honor_taints: bool) -> Callable[[NodeInfo], bool]:
    """Which nodes a spread constraint is about: those with all its labels that the pod's own wishes do not exclude."""

    def takes_part(node: NodeInfo) -> bool:
        labels = node.labels
        if not all(key in labels for key in keys) or not only.selects(node.name, labels):
            return False
        taints = node.spec.taints if node.spec is not None else ()
        return not honor_taints or next(only.untolerated(taints, HARD_EFFECTS), None) is None

    return takes_part
