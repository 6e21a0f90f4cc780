"""Who wrote what: the writes of one account, by the API server's audit log.

Its metrics count all writes of all clients together; of a cluster at rest that is mostly what its kubelets say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

LEASES: Final = "leases"
_METHODS: Final = {
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""Of each verb that writes, in Kubernetes' words."""


class _Reference(msgspec.Struct):
    resource: str = ""
    subresource: str = ""


class _Event(msgspec.Struct, rename="camel"):
    verb: str
    object_ref: _Reference = msgspec.field(default_factory=_Reference)


_decode = msgspec.json.Decoder(_Event).decode


class AuditLog:
    """The writes of `user` from the API server's start on; its files are in `folder`, which nobody else needs."""

    def __init__(self, folder: Path, user: str) -> None:
        self._log = folder / "audit.log"
        self._policy = folder / "audit-policy.json"
        rules = [{"level": "Metadata", "users": [user], "verbs": [*_METHODS]}, {"level": "None"}]
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
        self._policy.write_bytes(msgspec.json.encode(policy))

    @property
    def flags(self) -> tuple[str, ...]:
        """With these the API server writes it."""
        return (f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}")

    def writes(self) -> Counter[str]:
        """All that have been answered so far, refused ones and dry runs too: `PATCH pods/status`, `PUT leases`."""
        *lines, _ = self._log.read_bytes().split(b"\n") if self._log.exists() else [b""]
        return Counter(map(_kind, map(_decode, lines)))


def without_leases(writes: Mapping[str, int]) -> Counter[str]:
    """Those of anything but Leases."""
    return Counter({kind: number for kind, number in writes.items() if kind.partition(" ")[2] != LEASES})


def _kind(event: _Event) -> str:
    written = event.object_ref
    return f"{_METHODS[event.verb]} {'/'.join(filter(None, (written.resource, written.subresource)))}"
