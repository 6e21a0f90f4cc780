"""The annotations and labels that the engine reads and writes on pods and PodGroups."""

from __future__ import annotations

from typing import Final

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
"""On a pod: its PodGroup, in its namespace."""
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
"""On a pod without a group: its queue."""
TASK_SPEC: Final = "volcano.sh/task-spec"
"""On a pod: its role in the gang."""
TASK_PRIORITY: Final = "volcano.sh/task-priority"
PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
"""On a pod: how long after its start it is not evicted for others, as a Go duration."""
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
"""On a pod: `*` when it bears nodes of a revocable zone (on a node, as a label: its zone)."""
MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
"""On a PodGroup: its disruption budget, a number or a percentage."""
SLA_WAITING_TIME: Final = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
"""On a PodGroup: how long it may wait, as a Go duration; the first that can be read holds."""

COMPANIONS: Final = "muster.dev/companions"
"""On a PodGroup: the pods that it will need later, as JSON: [{"role": ..., "podSpec": {...}}]."""
COMPANION_NODES: Final = "muster.dev/companion-nodes"
"""On a PodGroup, written here: role to the node held for it, as JSON."""
BROKEN_SINCE: Final = "muster.dev/broken-since"
"""On a PodGroup, written here: since when it is below its minimum after it had been bound, RFC 3339."""
EXPECTED_RUNTIME: Final = "muster.dev/expected-runtime"
"""On a pod, or on a PodGroup for all its pods: how long it will run (`90s`, `2h`). What is no duration says nothing."""
STARVATION_TIMEOUT: Final = "muster.dev/starvation-timeout"
"""On a Queue: how long its gangs wait before room is held for them, in place of `--starvation-timeout`."""
REASON: Final = "muster.dev/reason"
"""On a PodGroup, written here: why it waits, as JSON."""
