"""What happened to pods in one pass, in words: one event for all that share it, however many they are.

A group of a thousand workers would otherwise cost a thousand events, most of which nobody could tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MOST_NAMED: Final = 10


def pods_in_words(did: str, role: str, keys: Sequence[str], why: str = "") -> str:
    """ "Created worker Pod ns/a", "Deleted 12 worker Pods, since …: ns/a, ns/b, … and 2 more".

    `did` begins the sentence, `keys` are "namespace/name", at least one; `why` is the rest of a sentence.
    """
    because = f": {why}" if why else ""
    if len(keys) == 1:
        return f"{did} {role.lower()} Pod {keys[0]}{because}"
    named = ", ".join(keys[:MOST_NAMED])
    more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
    return f"{did} {len(keys)} {role.lower()} Pods {named}{more}{because}"
