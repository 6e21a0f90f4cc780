"""What users say in annotations: durations, and what we wrote there ourselves.

A note that can't be read says nothing: it only ever refines what holds without it.
"""

from __future__ import annotations

import re

import msgspec

from muster.engine import wire_keys
from muster.engine.times import unix_seconds
from muster.kube.objects import ApiObject, PodGroup
from muster.scheduler.plugins.arguments import duration
from muster.scheduler.reasons import ReasonClass
from muster.scheduler.specs import Wait

_COUNT = re.compile(r"[0-9]{1,9}")


def stated_duration(found: ApiObject, key: str) -> float | None:
    """The duration that an annotation states, in seconds."""
    text = found.metadata.annotations.get(key)
    try:
        return max(0.0, duration(text)) if text else None
    except ValueError:
        return None


def stated_time(text: str | None) -> float | None:
    """An RFC 3339 time as Unix seconds."""
    try:
        return unix_seconds(text) if text else None
    except ValueError:
        return None


def stated_count(text: str | None) -> int | None:
    """A number of pods."""
    return int(text) if text and _COUNT.fullmatch(text) else None


class _Note(msgspec.Struct, rename={"reason_class": "class"}):
    reason_class: ReasonClass
    since: str | None = None


def stored_wait(group: PodGroup) -> Wait | None:
    """Since when the gang waits, as the reason that we wrote last says. Nobody waits from before it was made."""
    try:
        note = msgspec.json.decode(group.metadata.annotations.get(wire_keys.REASON, ""), type=_Note)
    except msgspec.MsgspecError:
        return None
    since = stated_time(note.since)
    if since is None:
        return None
    return Wait(max(since, unix_seconds(group.metadata.creation_timestamp)), note.reason_class.for_room)
