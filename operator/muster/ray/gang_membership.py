"""How a pod joins its gang: the scheduler that places it, the PodGroup that it names, and the gate that holds it back.

Only pods that our scheduler places are gated. A template that names a node, or another scheduler, would be refused by
the API server or stay gated for ever; such a pod is made without the gate, and `why_ungated` says why, so that the
caller can tell the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.ray import labels


@dataclass(frozen=True, slots=True)
class GangMembership:
    """The gang that the pods of one cluster or job belong to.

    `pod_group` is the PodGroup's name, in the pods' namespace. `queue` and `priority_class` are repeated as labels on
    the pods when given, as Volcano's tools expect. `gate` is None when another scheduler than ours places the gang.
    """

    pod_group: str
    scheduler_name: str = labels.SCHEDULER_NAME
    gate: str | None = labels.GANG_GATE
    queue: str | None = None
    priority_class: str | None = None

    def labels(self) -> dict[str, str]:
        """The labels that a member carries."""
        wanted = {labels.QUEUE_NAME: self.queue, labels.PRIORITY_CLASS: self.priority_class}
        return {key: value for key, value in wanted.items() if value}

    def annotations(self, role: str) -> dict[str, str]:
        """The annotations that make a pod a member in this role: `headgroup`, a worker group, or `submittergroup`."""
        return {labels.GROUP_NAME: self.pod_group, labels.TASK_SPEC: role}

    def places(self, pod_spec: Mapping[str, Any]) -> bool:
        """Whether a pod of this spec is a member at all: one that names a foreign scheduler is not.

        With resource claims Kubernetes' own scheduler is not foreign.
        """
        named = pod_spec.get("schedulerName")
        known = [self.scheduler_name, "volcano", *([labels.DEFAULT_SCHEDULER] if self._delegates(pod_spec) else [])]
        return not named or named in known

    def _delegates(self, pod_spec: Mapping[str, Any]) -> bool:
        """Whether a member is bound by Kubernetes' own scheduler, which alone can have devices allocated.

        Our gate holds it back all the same, and its node is chosen with those of its gang.
        """
        return bool(pod_spec.get("resourceClaims")) and self.gate is not None

    def why_ungated(self, pod_spec: Mapping[str, Any]) -> str | None:
        """Why a pod of this spec can't be held back until the gang has a place; None when it can."""
        if self.gate is None:
            return f"scheduler {self.scheduler_name} places the gang"
        if not self.places(pod_spec):
            return f"the template names scheduler {pod_spec['schedulerName']}"
        if pod_spec.get("nodeName"):
            return f"the template names node {pod_spec['nodeName']}"
        return None

    def join(self, pod: dict[str, Any], role: str) -> None:
        """Make this pod manifest (or pod template) a member of the gang; a foreign pod is left as it is."""
        spec = pod["spec"]
        if not self.places(spec):
            return
        gated = self.why_ungated(spec) is None
        metadata = pod["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **self.labels()}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **self.annotations(role)}
        delegated = gated and self._delegates(spec)
        spec["schedulerName"] = labels.DEFAULT_SCHEDULER if delegated else self.scheduler_name
        gates = [gate for gate in spec.get("schedulingGates") or [] if gate.get("name") != self.gate]
        if gated:
            spec["schedulingGates"] = [*gates, {"name": self.gate}]
