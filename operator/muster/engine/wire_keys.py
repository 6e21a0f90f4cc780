"""The annotations, labels and owners that the engine reads, and writes, on pods and PodGroups."""

from __future__ import annotations

from typing import Final

GROUP_NAME: Final = "scheduling.k8s.io/group-name"
"""On a pod: its PodGroup, in its namespace."""
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
"""On a pod without a group: its queue."""
QUEUE_LABEL: Final = "volcano.sh/queue-name"
"""On a pod of a group: the queue of that, for as long as its PodGroup is missing."""
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
TOPOLOGY_AFFINITY: Final = "volcano.sh/task-topology-affinity"
TOPOLOGY_ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TOPOLOGY_ORDER: Final = "volcano.sh/task-topology-task-order"
"""On a PodGroup: which of its roles share nodes (`ps,worker;chief`), which not, and their order (`ps,worker`)."""
SLA_WAITING_TIME: Final = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
"""On a PodGroup: how long it may wait, as a Go duration; the first that can be read holds."""
QUEUE_ALLOCATION_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
"""On a pod: `true` lets the scheduler remove the scheduling gate of the same name."""
HIERARCHY: Final = "volcano.sh/hierarchy"
"""On a Queue: its path in the tree of hierarchical drf, `root/sci/dev`."""
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
"""On a Queue: what each step of that path weighs, `1/2/3`."""

COMPANIONS: Final = "muster.dev/companions"
"""On a PodGroup: the pods that it will need later, as JSON: [{"role": ..., "podSpec": {...}}]."""
COMPANION_NODES: Final = "muster.dev/companion-nodes"
"""On a PodGroup, written here: role to the node held for it, as JSON."""
BROKEN_SINCE: Final = "muster.dev/broken-since"
"""On a PodGroup, written here: since when it is below its minimum after it had been bound, RFC 3339."""
MINIMUM_MET: Final = "muster.dev/minimum-met"
"""On a PodGroup, written here: the minMember that it met last, as long as it has pods on nodes."""
EXPECTED_RUNTIME: Final = "muster.dev/expected-runtime"
"""On a pod, or on a PodGroup for all its pods: how long it will run (`90s`, `2h`). What is no duration says nothing."""
STARVATION_TIMEOUT: Final = "muster.dev/starvation-timeout"
"""On a Queue: how long its gangs wait before room is held for them, in place of `--starvation-timeout`."""
DELEGATED_AT: Final = "muster.dev/delegated-at"
"""On a pod, written here: since when the default scheduler is to bind it to the node that it is pinned to, RFC 3339."""
RAY: Final = "ray.io/"
"""How the API version of a RayCluster or RayJob begins, in an owner reference."""
REASON: Final = "muster.dev/reason"
"""On a PodGroup, written here: why it waits, as JSON."""

NOTES_ON_PODS: Final = frozenset(
    {
        GROUP_NAME,
        QUEUE_NAME,
        TASK_SPEC,
        TASK_PRIORITY,
        PREEMPTABLE,
        COOLDOWN_TIME,
        REVOCABLE_ZONE,
        QUEUE_ALLOCATION_GATE,
        EXPECTED_RUNTIME,
        DELEGATED_AT,
    }
)
"""All annotations of pods that are read."""
