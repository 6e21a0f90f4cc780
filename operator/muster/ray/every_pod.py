"""What the operator's own configuration puts into every Ray pod. What a user's template has itself wins."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Container = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EveryPod:
    """Containers beside Ray's (after all others), variables of Ray's container, annotations and labels (as pairs)."""

    head_sidecars: tuple[Container, ...] = ()
    worker_sidecars: tuple[Container, ...] = ()
    env: tuple[Mapping[str, Any], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    def sidecars(self, *, is_head: bool) -> tuple[Container, ...]:
        """The containers that a head, or a worker, gets."""
        return self.head_sidecars if is_head else self.worker_sidecars

    def add_sidecars(self, pod_spec: dict[str, Any], *, is_head: bool) -> None:
        """Add them to a pod of which all other containers are there."""
        added = [copy.deepcopy(dict(sidecar)) for sidecar in self.sidecars(is_head=is_head)]
        if added:
            pod_spec["containers"] = [*pod_spec["containers"], *added]

    def with_env(self, user: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The user's variables, and those of ours that the user has not set."""
        kept = list(user)
        given = {variable.get("name") for variable in kept}
        return [*kept, *(variable for variable in self.env if variable["name"] not in given)]
