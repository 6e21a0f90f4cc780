"""Unix seconds to RFC 3339 and back, as Kubernetes writes them.

Users can write times too (a PodGroup's status is theirs to change), so that what is read here is always within what
can be written again.
"""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """Write Unix seconds as metav1.Time does: UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().removesuffix("+00:00") + "Z"


def unix_seconds(text: str | None) -> float:
    """Read an RFC 3339 time as Unix seconds; an absent one is 0. Raises ValueError for anything else."""
    if not text:
        return 0.0
    try:
        return datetime.fromisoformat(text).astimezone(UTC).timestamp()
    except OverflowError as error:  # its offset takes it out of the years that there are
        raise ValueError(f"{text} is out of range") from error
