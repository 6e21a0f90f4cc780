"""What an extender answers, read as Go reads it: names in any case, what is missing is zero, a wrong type is an error.

Every reader raises ValueError for an answer that can't be meant.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Body = Mapping[str, Any]
"""An answer, its top-level names in lower case."""

_LONGEST_MESSAGE = 200


def parse(text: bytes) -> Body:
    """The answer as data. `null` is an answer without fields."""
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError("an answer that is not JSON") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError("an answer that is no JSON object")
    return _lowered(found)


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


def _lowered(value: Mapping[str, Any]) -> Body:
    return {name.lower(): each for name, each in value.items()}


def refusal(body: Body) -> str:
    """Of `predicate`: why the node will not do, empty when it will.

    It stands in `status`; in `errorMessage` with extenders from before Volcano 1.7, which its documentation still
    shows; and in a list of statuses with those for 1.8.
    """
    status = body.get("status")
    if not isinstance(status, list):
        _whole(body, "code")
        return _line(_text(body, "status") or _text(body, "errormessage"))
    for each in status:
        if not isinstance(each, dict):
            raise _unreadable("status")
        one = _lowered(each)
        if _whole(one, "code"):
            return _line(_text(one, "reason")) or "no reason given"
    return ""


@dataclass(frozen=True, slots=True)
class Scores:
    """Points by node; `refusal` is set when no node may be chosen at all."""

    points: Mapping[str, float]
    refusal: str = ""


def scores(body: Body) -> Scores:
    """Of `prioritize`. An error message, or no scores at all, keeps the task from being placed (Volcano's rule)."""
    message = _line(_text(body, "errormessage"))
    found = body.get("nodescore")
    if message or found is None:
        return Scores({}, message or "no scores given")
    if not isinstance(found, dict) or not all(_is_number(each) for each in found.values()):
        raise _unreadable("nodeScore")
    return Scores(found)


def _is_number(value: object) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and abs(value) < 1e12
    )


def victims(body: Body) -> frozenset[str] | None:
    """Of `preemptable` and `reclaimable`: the uids of the tasks that may go; None when it has no opinion (status 0)."""
    found = body.get("victims")
    if found is not None and not isinstance(found, list):
        raise _unreadable("victims")
    uids = []
    for each in found or ():
        if not isinstance(each, dict):
            raise _unreadable("victims")
        uids.append(_text(_lowered(each), "uid"))
    return frozenset(uids) if _whole(body, "status") else None


def vote(body: Body) -> int:
    """Of `jobEnqueueable`: above 0 for, below 0 against, 0 no opinion."""
    return _whole(body, "status")


def overused(body: Body) -> bool:
    """Of `queueOverused`."""
    return _flag(body, "overused")


def ready(body: Body) -> bool:
    """Of `jobReady`."""
    return _flag(body, "status")


def complaint_in(text: bytes) -> str:
    """Of `allocateFunc` and `deallocateFunc`: what is wrong, empty when nothing is."""
    return _line(_text(parse(text), "errormessage"))


def _text(body: Body, name: str) -> str:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise _unreadable(name)
    return value or ""


def _whole(body: Body, name: str) -> int:
    value = body.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise _unreadable(name)
    return value or 0


def _flag(body: Body, name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise _unreadable(name)
    return bool(value)


def _line(text: str) -> str:
    """One line of bearable length: it ends up in statuses."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 1] + "…"


def _unreadable(name: str) -> ValueError:
    return ValueError(f"an answer whose {name} is of a wrong type")
