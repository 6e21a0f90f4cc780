"""A reason as data for machines: the annotation `muster.dev/reason`, and whoever else shows it as JSON.

Fields that say nothing are absent; amounts are Kubernetes quantities. On a PodGroup nothing in it changes with time
alone, and nothing names another tenant's gang: what would is worked out only for who asks, with their own rights.
"""

from __future__ import annotations

from typing import Any

from muster.engine.times import rfc3339
from muster.quantities import format_quantity
from muster.scheduler.reasons import Holder, Reason, describe
from muster.scheduler.suggested import Suggestion


def reason_document(reason: Reason) -> dict[str, Any]:
    """The fields of a reason by their public names."""
    document: dict[str, Any] = {
        "code": reason.code.value,
        "class": reason.reason_class.value,
        "message": describe(reason),
        "resource": reason.resource,
        **{name: _quantity(reason, getattr(reason, name)) for name in ("requested", "used", "free", "limit")},
        "have": reason.have,
        "need": reason.need,
        "position": reason.position,
        "ahead": reason.ahead,
        "waited": reason.waited,
        "queue": reason.queue,
        "role": reason.role,
        "member": reason.member,
        "node": reason.node,
        "haveIfEmpty": reason.have_if_empty,
        "nodes": dict(reason.nodes) or None,
        "nearMiss": {"node": reason.near_miss.node, "lacks": reason.near_miss.lacks} if reason.near_miss else None,
        "holders": [_holder(reason, each) for each in reason.holders] or None,
        "wakes": [wake.value for wake in reason.awaits],
        "since": rfc3339(reason.since) if reason.since is not None else None,
        "advice": reason.advice.value,
        "suggestion": _suggestion(reason.suggestion) if reason.suggestion is not None else None,
    }
    return {name: value for name, value in document.items() if value is not None}


def _holder(reason: Reason, holder: Holder) -> dict[str, Any]:
    document: dict[str, Any] = {"podGroup": holder.pod_group, "queue": holder.queue}
    document["amount"] = _quantity(reason, holder.amount)
    document["reclaimable"] = holder.reclaimable
    document["held"] = holder.held or None
    return {name: value for name, value in document.items() if value not in (None, "")}


def _suggestion(suggestion: Suggestion) -> dict[str, Any]:
    most = suggestion.at_most
    document = {
        "text": suggestion.words,
        "change": dict(suggestion.change),
        "atMost": dict(most.change) if most else None,
    }
    return {name: value for name, value in document.items() if value}


def _quantity(reason: Reason, amount: int | None) -> str | None:
    if amount is None or reason.resource is None:
        return None
    return format_quantity(amount, reason.resource)
