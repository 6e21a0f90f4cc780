"""Unix seconds to RFC 3339 and back, as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(seconds: float) -> str:
    """Write Unix seconds as metav1.Time does: UTC, whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix_seconds(text: str | None) -> float:
    """Read an RFC 3339 time as Unix seconds; an absent one is 0. Raises ValueError for anything else."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0
