"""The engine: what turns a scheduler that only decides into one that acts.

It wires informers to the model (mirror), the model to cycles (loop), and each cycle's Outcome to writes (binder,
evictor, status). All state is in the API server: a new engine reads everything before its first decision (P5).
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.engine.clock import Clock, SystemClock
from muster.engine.configuration_source import ConfigurationSource, FixedConfiguration
from muster.kube.client import ApiClient
from muster.kube.events import EventRecorder, ObjectReference
from muster.kube.informer import Informer
from muster.kube.objects import Node, Pod, PodGroup, PriorityClass, Queue


@dataclass(frozen=True, slots=True)
class EngineInformers:
    """The watches that the engine reads, run by their owner.

    Pods of all namespaces, unfiltered: the pods of others fill nodes too.
    """

    pods: Informer[Pod]
    nodes: Informer[Node]
    pod_groups: Informer[PodGroup]
    queues: Informer[Queue]
    priority_classes: Informer[PriorityClass]


class Engine:
    """The acting scheduler; one at a time may run against a cluster (the caller holds the Lease).

    `scheduler_names` are the pods' schedulerNames that are ours, `gate` the scheduling gate that is ours to remove,
    `itself` the object that configuration events are about, `concurrency` how many bindings are posted at a time.
    """

    def __init__(
        self,
        client: ApiClient,
        informers: EngineInformers,
        recorder: EventRecorder,
        *,
        clock: Clock | None = None,
        configuration_source: ConfigurationSource | None = None,
        scheduler_names: tuple[str, ...] = ("muster", "volcano"),
        gate: str = "muster.dev/gang",
        itself: ObjectReference | None = None,
        concurrency: int = 50,
        debounce: float = 0.01,
    ) -> None:
        self._client = client
        self._informers = informers
        self._recorder = recorder
        self._clock = clock or SystemClock()
        self._configuration_source = configuration_source or FixedConfiguration()
        self._scheduler_names = scheduler_names
        self._gate = gate
        self._itself = itself
        self._concurrency = concurrency
        self._debounce = debounce

    async def run(self) -> None:
        """Schedule until cancelled; the first cycle comes once all informers have synced."""
