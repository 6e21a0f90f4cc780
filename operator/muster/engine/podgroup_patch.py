"""The difference between what a PodGroup says and what it should say, as a merge patch.

Only our fields are in it, and only those that differ; the UID is its precondition (409 when the PodGroup was made
anew). Conditions that are not ours stay. Annotations for which those of others leave no room are left out: the whole
patch would be refused for them, and the status with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from muster.engine import wire_keys
from muster.engine.field_ownership import CLEARED, may_be_cleared
from muster.engine.reason_document import reason_document
from muster.engine.times import rfc3339
from muster.engine.wire_keys import REASON
from muster.kube.objects import PodGroup, PodGroupCondition
from muster.scheduler.outcome import PodGroupStatus
from muster.scheduler.specs import Condition

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULED: Final = "Scheduled"
_NOT_OTHERS: Final = ("code", "queue", "resource", "role", "requested", "need", "since")
"""The fields of a reason that only the gang itself changes."""
_OURS: Final = frozenset({UNSCHEDULABLE, SCHEDULED})
LARGEST: Final = 256 * 1024
"""Bytes that keys and values of all annotations of an object may have together: the API server's rule."""
_NOTES: Final = (wire_keys.COMPANION_NODES, wire_keys.BROKEN_SINCE, wire_keys.MINIMUM_MET, REASON)
"""Our annotations, those first that are to find room first: the conditions say in words what the last one does."""


def new_transition_id() -> str:
    """A transitionID that no condition had before."""
    return str(uuid.uuid4())


def pod_group_patch(
    shown: PodGroup, status: PodGroupStatus, now: float, transition_id: Callable[[], str] = new_transition_id
) -> dict[str, Any] | None:
    """The merge patch that makes `shown` say `status`; None when it does already. `now` in Unix seconds."""
    annotations = changed_annotations(shown, status)
    fields = _changed_fields(shown, status, now, transition_id)
    if not annotations and not fields:
        return None
    metadata: dict[str, Any] = {"uid": shown.metadata.uid}
    if annotations:
        metadata["annotations"] = annotations
    if may_be_cleared(shown.metadata):
        metadata["managedFields"] = CLEARED
    return {"metadata": metadata, "status": fields} if fields else {"metadata": metadata}


def differs_in_numbers_only(shown: PodGroup, status: PodGroupStatus) -> bool:
    """Whether `shown` says all of `status` but for numbers of its reason that others change.

    So it may be for a gang that waits for room, quota or its turn: what else keeps a gang waiting is its own affair.
    """
    reason, noted = status.reason, reason_shown(shown)
    if reason is None or noted is None or not reason.reason_class.for_room:
        return False
    document = reason_document(reason)
    if document == noted or any(document.get(name) != noted.get(name) for name in _NOT_OTHERS):
        return False
    fields = _changed_fields(shown, status, 0.0, str)
    turns = {each.type: each.status for each in shown.status.conditions}
    told = {each["type"]: each["status"] for each in fields.get("conditions", ())} or turns
    return told == turns and fields.keys() <= {"conditions"} and changed_annotations(shown, status).keys() == {REASON}


def reason_shown(shown: PodGroup) -> dict[str, Any] | None:
    """The reason that stands on the PodGroup, by its public names; None where none, or nothing readable, does."""
    text = shown.metadata.annotations.get(REASON)
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if text else None
    except msgspec.MsgspecError:
        return None


def wanted_annotations(status: PodGroupStatus) -> dict[str, str | None]:
    """Our annotations as they should be; None for one that should not be there."""
    reason = None if status.reason is None else _json(reason_document(status.reason))
    companions = _json(dict(sorted(status.companions.items()))) if status.companions else None
    broken = None if status.broken_since is None else rfc3339(status.broken_since)
    minimum = None if status.minimum_met is None else str(status.minimum_met)
    return {
        REASON: reason,
        wire_keys.COMPANION_NODES: companions,
        wire_keys.BROKEN_SINCE: broken,
        wire_keys.MINIMUM_MET: minimum,
    }


def crowded_out(shown: PodGroup, status: PodGroupStatus) -> list[str]:
    """Those of our annotations that the PodGroup should have and that others' leave no room for."""
    wanted = wanted_annotations(status)
    return [key for key, value in _fitting(shown, wanted).items() if value != wanted[key]]


def bytes_of_others(shown: PodGroup) -> int:
    """How many of the bytes that an object's annotations may have are taken by those that are not ours."""
    return sum(_size(key, value) for key, value in shown.metadata.annotations.items() if key not in _NOTES)


def changed_annotations(shown: PodGroup, status: PodGroupStatus) -> dict[str, str | None]:
    """Our annotations that have to be written, with None for one that has to go."""
    there = shown.metadata.annotations
    wanted = _fitting(shown, wanted_annotations(status))
    return {key: value for key, value in wanted.items() if there.get(key) != value}


def _fitting(shown: PodGroup, wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    """What is wanted, with None for what finds no room: an old word is no longer true then either."""
    fitting: dict[str, str | None] = {}
    taken = bytes_of_others(shown)
    for key in _NOTES:
        value = wanted[key]
        size = 0 if value is None else _size(key, value)
        fitting[key] = value if taken + size <= LARGEST else None
        taken += size if fitting[key] is not None else 0
    return fitting


def _size(key: str, value: str) -> int:
    return len(key.encode()) + len(value.encode())


def _changed_fields(
    shown: PodGroup, status: PodGroupStatus, now: float, transition_id: Callable[[], str]
) -> dict[str, Any]:
    wanted = {
        "phase": status.phase.value,
        "running": status.running,
        "succeeded": status.succeeded,
        "failed": status.failed,
    }
    changed = {name: value for name, value in wanted.items() if getattr(shown.status, name) != value}
    conditions = _conditions(shown, status, now, transition_id)
    if conditions != shown.status.conditions:
        changed["conditions"] = msgspec.to_builtins(conditions)
    return changed


def _conditions(
    shown: PodGroup, status: PodGroupStatus, now: float, transition_id: Callable[[], str]
) -> list[PodGroupCondition]:
    """The whole list: conditions that say the same stay as they are, at most one of each type, order kept.

    Those of no type say nothing to anybody.
    """
    there = {each.type: each for each in shown.status.conditions if each.type}
    wanted = {each.type: _merged(each, there.get(each.type), now, transition_id) for each in status.conditions}
    kept = {kind: each for kind, each in there.items() if kind in wanted or kind not in _OURS}
    return list({**kept, **wanted}.values())


def _merged(
    wanted: Condition, there: PodGroupCondition | None, now: float, transition_id: Callable[[], str]
) -> PodGroupCondition:
    status = "True" if wanted.status else "False"
    same = (status, wanted.reason, wanted.message)
    if there is not None and (there.status, there.reason or "", there.message or "") == same:
        return there
    since = rfc3339(wanted.last_transition or now)
    if there is not None and there.status == status and there.last_transition_time:
        since = there.last_transition_time
    return PodGroupCondition(
        type=wanted.type,
        status=status,
        reason=wanted.reason or None,
        message=wanted.message or None,
        last_transition_time=since,
        transition_id=transition_id(),
    )


def _json(document: Mapping[str, Any]) -> str:
    return msgspec.json.encode(document).decode()
