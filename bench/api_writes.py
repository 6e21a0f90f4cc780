"""Writes as the API server counts them, in its own metrics."""

from __future__ import annotations

import re

_ANSWERED = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_VERB = re.compile(r'verb="(?:POST|PUT|PATCH|DELETE|DELETECOLLECTION|APPLY)"')


def writes(metrics: str) -> int:
    """All writes that have been answered so far, refused ones too, but for those of Leases.

    `metrics` is what the API server says at `/metrics`.
    """
    return sum(
        int(float(number))
        for labels, number in _ANSWERED.findall(metrics)
        if _VERB.search(labels) and 'resource="leases"' not in labels
    )
