"""What happened to pods in one pass, in words: one event for all that share it, however many they are.

A group of a thousand workers would otherwise cost a thousand events, most of which nobody could tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOST_NAMED: Final = 10


def pods_in_words(did: str, keys: Sequence[str], why: str = "", *, role: str = "") -> str:
    """ "Created worker Pod ns/a", "Deleted 12 worker Pods ns/a, ns/b, … and 2 more: since …".

    `did` begins the sentence, `keys` are "namespace/name", at least one; `why` is the rest of a sentence.
    """
    kind = f"{role.lower()} Pod".lstrip()
    because = f": {why}" if why else ""
    if len(keys) == 1:
        return f"{did} {kind} {keys[0]}{because}"
    named = ", ".join(keys[:MOST_NAMED])
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    return f"{did} {len(keys)} {kind}s {named}{more}{because}"
