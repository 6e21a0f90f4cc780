"""PodGroups to the scheduler's gangs.

A PodGroup that can't be used as it is stays known with its `problem`, so that its gang waits with that as its reason.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from muster.engine import wire_keys
from muster.engine.amounts import TranslationError, amounts, resources
from muster.engine.companion_specs import companions_in
from muster.engine.notes import stated_count, stated_duration, stated_time, stored_wait
from muster.engine.pod_specs import TRUE
from muster.engine.times import unix_seconds
from muster.kube import objects
from muster.kube.malformed import MalformedObject
from muster.scheduler.plugins.arguments import duration
from muster.scheduler.specs import Companion, Condition, DisruptionBudget, Phase, PodGroupSpec, Portion, TaskTopology

_PHASES = {phase.value: phase for phase in Phase}
_PORTION = re.compile(r"([0-9]{1,9})(%?)")
_DEFAULT_QUEUE = "default"


def pod_group_spec(group: objects.PodGroup) -> PodGroupSpec:
    """Translate a PodGroup, its own problem included. Never raises."""
    try:
        min_resources = _min_resources(group)
        companions = tuple(_companions(group))
        problem = _member_problem(group)
    except TranslationError as error:
        min_resources, companions, problem = None, (), str(error)
    meta, spec, status = group.metadata, group.spec, group.status
    return PodGroupSpec(
        namespace=meta.namespace or "",
        name=meta.name,
        uid=meta.uid,
        min_member=max(0, spec.min_member or 0),
        min_task_member=spec.min_task_member,
        min_resources=min_resources,
        queue=spec.queue or _DEFAULT_QUEUE,
        priority_class=spec.priority_class_name or "",
        creation=unix_seconds(meta.creation_timestamp),
        phase=_PHASES.get(status.phase or ""),
        conditions=tuple(_condition(each) for each in status.conditions if each.type),
        running=status.running,
        succeeded=status.succeeded,
        failed=status.failed,
        companions=companions,
        companion_nodes=companion_nodes(group),
        broken_since=stated_time(meta.annotations.get(wire_keys.BROKEN_SINCE)),
        minimum_met=stated_count(meta.annotations.get(wire_keys.MINIMUM_MET)),
        problem=problem,
        sla_waiting_time=_sla_waiting_time(group),
        preemptable=_preemptable(group),
        budget=_budget(group),
        expected_runtime=stated_duration(group, wire_keys.EXPECTED_RUNTIME),
        wait=stored_wait(group),
        topology=_topology(group),
    )


def malformed_pod_group_spec(found: MalformedObject) -> PodGroupSpec:
    """What remains of a PodGroup that can't even be read: its name, and what is wrong with it."""
    return PodGroupSpec(found.namespace or "", found.name, uid=found.uid, problem=found.path_message)


def companion_nodes(group: objects.PodGroup) -> dict[str, str]:
    """The nodes held for companions, by role, as written before. What is not such a map counts as none."""
    try:
        return msgspec.json.decode(group.metadata.annotations.get(wire_keys.COMPANION_NODES, "{}"), type=dict[str, str])
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _sla_waiting_time(group: objects.PodGroup) -> float | None:
    """How long the gang may wait. What is no time, or none at all, says nothing (Volcano's rule)."""
    for key in wire_keys.SLA_WAITING_TIME:
        try:
            seconds = duration(group.metadata.annotations.get(key))
        except ValueError:
            continue
        if seconds > 0:
            return seconds
    return None


def _preemptable(group: objects.PodGroup) -> bool | None:
    """What the gang says of itself as a whole: annotation, else label. What is no truth value means no."""
    meta = group.metadata
    word = meta.annotations.get(wire_keys.PREEMPTABLE) or meta.labels.get(wire_keys.PREEMPTABLE)
    return word in TRUE if word else None


def _budget(group: objects.PodGroup) -> DisruptionBudget | None:
    notes = group.metadata.annotations
    least, most = notes.get(wire_keys.MIN_AVAILABLE), notes.get(wire_keys.MAX_UNAVAILABLE)
    if not least and not most:
        return None
    # A budget that can't be read allows no disruption: whoever wrote it wanted some protection.
    return DisruptionBudget(
        min_available=_portion(least, Portion(100, percent=True)) if least else None,
        max_unavailable=_portion(most, Portion(0)) if most else None,
    )


def _topology(group: objects.PodGroup) -> TaskTopology | None:
    """What the gang says of its roles; a role named twice in a group makes all of it void (Volcano's rule)."""
    notes = group.metadata.annotations
    keys = (wire_keys.TOPOLOGY_AFFINITY, wire_keys.TOPOLOGY_ANTI_AFFINITY, wire_keys.TOPOLOGY_ORDER)
    if not any(key in notes for key in keys):
        return None
    near, far, order = (_role_groups(notes.get(key, "")) for key in keys)
    found = TaskTopology(near, far, order[0] if order else ())
    groups = (*found.affinity, *found.anti_affinity, found.order)
    return None if any(len(set(roles)) < len(roles) for roles in groups) else found


def _role_groups(text: str) -> tuple[tuple[str, ...], ...]:
    groups = (tuple(role.strip() for role in group.split(",") if role.strip()) for group in text.split(";"))
    return tuple(group for group in groups if group)


def _portion(text: str, otherwise: Portion) -> Portion:
    """`3` or `30%`."""
    match = _PORTION.fullmatch(text)
    return Portion(int(match[1]), bool(match[2])) if match else otherwise


def _min_resources(group: objects.PodGroup) -> Any:
    found = group.spec.min_resources
    return None if found is None else resources(amounts(found, "spec.minResources"))


def _member_problem(group: objects.PodGroup) -> str:
    if (group.spec.min_member or 0) < 0:
        return f"spec.minMember: {group.spec.min_member} is negative"
    for role, count in group.spec.min_task_member.items():
        if count < 0:
            return f"spec.minTaskMember[{role}]: {count} is negative"
    return ""


def _companions(group: objects.PodGroup) -> list[Companion]:
    text = group.metadata.annotations.get(wire_keys.COMPANIONS)
    path = f"metadata.annotations[{wire_keys.COMPANIONS}]"
    return companions_in(text, path, group.metadata.namespace or "") if text else []


def _condition(found: objects.PodGroupCondition) -> Condition:
    return Condition(
        type=found.type,
        status=found.status == "True",
        reason=found.reason or "",
        message=found.message or "",
        last_transition=stated_time(found.last_transition_time) or 0.0,
    )
