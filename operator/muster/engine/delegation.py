"""Pods that the default scheduler binds, on the node that was decided here.

Claims to devices can be allocated by kube-scheduler only, and it looks only at pods that name it. So such a pod names
it, and is held back by our gate until its gang has a place. One patch then pins it to its node (required node affinity
by name, added to every term: of a gated pod Kubernetes lets affinity be tightened, never loosened), takes our gates
away and notes when. From then on the pod can go nowhere else, and a Muster that has just been started knows it again
by the note. Later a note that is not the echo of our own patch is somebody else's, and gives no place (see
`SchedulerCache`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from muster.engine.gates import gate_removal
from muster.engine.notes import stated_time
from muster.engine.times import rfc3339, unix_seconds
from muster.engine.wire_keys import DELEGATED_AT, GROUP_NAME
from muster.kube.objects import NodeAffinity, NodeSelectorTerm, Pod, PodSpec
from muster.scheduler.constraints import NODE_NAME_FIELD
from muster.scheduler.specs import Delegation

DEFAULT_SCHEDULER: Final = "default-scheduler"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS: Final = f"/spec/affinity/nodeAffinity/{_REQUIRED}/nodeSelectorTerms"


def delegation_of(pod: Pod, gate: str) -> Delegation | None:
    """What the pod says of its delegation; None for one that is not ours to delegate."""
    if not _is_the_default_schedulers(pod):
        return None
    notes = pod.metadata.annotations
    if GROUP_NAME not in notes:
        return None
    if any(each.name == gate for each in pod.spec.scheduling_gates):
        return Delegation()
    node = pod.spec.node_name or pinned_node(pod)
    if node is None or DELEGATED_AT not in notes:
        return None
    since = stated_time(notes[DELEGATED_AT])
    return Delegation(node, unix_seconds(pod.metadata.creation_timestamp) if since is None else since)


def _is_the_default_schedulers(pod: Pod) -> bool:
    return (pod.spec.scheduler_name or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER


def pinned_node(pod: Pod) -> str | None:
    """The node that the pod was pinned to when it was handed over, by us if it is to be believed."""
    if DELEGATED_AT not in pod.metadata.annotations:
        return None
    if pod.spec.scheduling_gates or not _is_the_default_schedulers(pod):
        return None
    pins = {_pin_of(term) for term in _terms(pod.spec) if not _matches_nothing(term)}
    return pins.pop() if len(pins) == 1 else None


def delegation_patch(pod: Pod, gate: str, node: str, now: float) -> list[dict[str, Any]] | None:
    """The JSON patch that hands this very pod (UID) to the default scheduler; None when our gate is not on it."""
    ungate = gate_removal(pod, gate)
    if ungate is None:
        return None
    note = {"op": "add", "path": f"/metadata/annotations/{DELEGATED_AT.replace('/', '~1')}", "value": rfc3339(now)}
    return [*ungate, *_pin(pod.spec, node), note]


def _pin(spec: PodSpec, node: str) -> list[dict[str, Any]]:
    name = {"key": NODE_NAME_FIELD, "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    if spec.affinity is None:
        return [{"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": {_REQUIRED: required}}}]
    if spec.affinity.node_affinity is None:
        return [{"op": "add", "path": "/spec/affinity/nodeAffinity", "value": {_REQUIRED: required}}]
    terms = _terms(spec)
    if not terms:
        return [{"op": "add", "path": f"/spec/affinity/nodeAffinity/{_REQUIRED}", "value": required}]
    return [
        {"op": "add", "path": f"{_TERMS}/{index}/matchFields/-", "value": name}
        if term.match_fields
        else {"op": "add", "path": f"{_TERMS}/{index}/matchFields", "value": [name]}
        for index, term in enumerate(terms)
        if not _matches_nothing(term)  # Kubernetes lets nothing be added to it
    ]


def unpinned(spec: PodSpec, node: str) -> PodSpec:
    """The pod's spec as it was before it was pinned.

    Where a pinned pod goes is no question any more, and a scheduler that tells nodes apart by their names because one
    pod does would have to look at each of them for all others too.
    """
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return spec
    replace = msgspec.structs.replace
    terms = [_without_pin(term, node) for term in affinity.node_affinity.required.node_selector_terms]
    ours_alone = len(terms) == 1 and _matches_nothing(terms[0])
    required = None if ours_alone else replace(affinity.node_affinity.required, node_selector_terms=terms)
    before: NodeAffinity = replace(affinity.node_affinity, required=required)
    return replace(spec, affinity=replace(affinity, node_affinity=before))


def _without_pin(term: NodeSelectorTerm, node: str) -> NodeSelectorTerm:
    if _pin_of(term) != node:
        return term
    return msgspec.structs.replace(term, match_fields=term.match_fields[:-1])


def _terms(spec: PodSpec) -> list[NodeSelectorTerm]:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else []


def _matches_nothing(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _pin_of(term: NodeSelectorTerm) -> str | None:
    """The node that the term's last field names: ours is added behind all others."""
    last = term.match_fields[-1] if term.match_fields else None
    if last is None or last.key != NODE_NAME_FIELD or last.operator != "In" or len(last.values) != 1:
        return None
    return last.values[0]
