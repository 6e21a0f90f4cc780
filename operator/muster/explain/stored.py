"""The answer from a PodGroup's status alone: what the scheduler last wrote, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from muster.engine import wire_keys
from muster.engine.notes import stated_time
from muster.engine.times import rfc3339
from muster.explain.target import Target


def stored_answer(target: Target, group: Mapping[str, Any], now: float, note: str) -> dict[str, Any]:
    """What a PodGroup (as the API server gives it) says. `note` is why nothing newer can be told."""
    meta, spec, status = (_mapping(group.get(part)) for part in ("metadata", "spec", "status"))
    written = last_written(group)
    reason = _reason(_mapping(meta.get("annotations")).get(wire_keys.REASON))
    if reason is not None and (since := stated_time(_text(reason.get("since")))) is not None:
        reason["waited"] = max(0, int(now - since))
    document = {
        "target": str(target),
        "podGroup": f"{meta.get('namespace')}/{meta.get('name')}",
        "source": "status",
        "note": note,
        "asOf": rfc3339(written) if written is not None else None,
        "age": max(0, int(now - written)) if written is not None else None,
        "phase": status.get("phase") or "Pending",
        "reason": reason,
        "queues": [{"name": spec.get("queue") or "default"}],
    }
    return {name: value for name, value in document.items() if value is not None}


def last_written(group: Mapping[str, Any]) -> float | None:
    """When the scheduler wrote what the PodGroup says; None when that can't be told.

    The API server keeps who wrote which field when; conditions tell only when they turned.
    """
    fields = _mapping(group.get("metadata")).get("managedFields")
    writes = [
        each.get("time")
        for each in (fields if isinstance(fields, list) else [])
        if isinstance(each, Mapping) and f"f:{wire_keys.REASON}" in str(each.get("fieldsV1"))
    ]
    conditions = _mapping(group.get("status")).get("conditions")
    turns = [_mapping(each).get("lastTransitionTime") for each in (conditions if isinstance(conditions, list) else [])]
    return max(_times(writes), default=None) or max(_times(turns), default=None)


def _times(texts: list[Any]) -> Iterator[float]:
    for text in texts:
        found = stated_time(_text(text))
        if found is not None:
            yield found


def _reason(text: object) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any]) if isinstance(text, str) and text else None
    except msgspec.MsgspecError:
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
