"""A long text made short enough to be stored: users control what Ray, a webhook or a kubelet says about their things.

A status that etcd refuses for its size would be refused again and again, and the job would show nothing at all.
"""

from __future__ import annotations

from typing import Final

LONGEST: Final = 10_000
"""Characters."""
_BEGINNING: Final = 1000


def excerpt(text: str) -> str:
    """A short text as it is. Of a long one its beginning, which says what it is, and its end, where traces lead to."""
    if len(text) <= LONGEST:
        return text
    gap = f"\n… ({len(text) - LONGEST} characters left out)\n"
    return text[:_BEGINNING] + gap + text[len(gap) + _BEGINNING - LONGEST :]
