"""The engine: what turns a scheduler that only decides into one that acts.

It wires informers to the model (mirror), the model to cycles (loop), and each cycle's Outcome to writes (binder,
evictor, status). All state is in the API server: an engine reads everything before its first decision (P5), and makes a
new model each time that it starts to lead.
"""

from __future__ import annotations

import logging

from muster.engine.clock import Clock, SystemClock
from muster.engine.configuration_source import ConfigurationSource, FixedConfiguration
from muster.engine.execution import EngineSettings, Execution
from muster.engine.mirror import EngineInformers
from muster.kube.background_turns import BackgroundTurns
from muster.kube.client import ApiClient
from muster.kube.events import EventRecorder, ObjectReference
from muster.kube.informer import MalformedObject
from muster.kube.resource import Resource

__all__ = ["Engine", "EngineInformers", "EngineSettings"]

logger = logging.getLogger(__name__)


class Engine:
    """The acting scheduler; one at a time may run against a cluster (the caller holds the Lease).

    Make it before the informers run, so that it hears of every malformed object. `run` may be called again after it
    was cancelled. `turns` tells when a status may be written; share it with the recorder. The keywords after it are
    those of EngineSettings.
    """

    def __init__(
        self,
        client: ApiClient,
        informers: EngineInformers,
        recorder: EventRecorder,
        *,
        clock: Clock | None = None,
        configuration_source: ConfigurationSource | None = None,
        turns: BackgroundTurns | None = None,
        scheduler_names: tuple[str, ...] = ("muster", "volcano"),
        gate: str = "muster.dev/gang",
        itself: ObjectReference | None = None,
        concurrency: int = 50,
        debounce: float = 0.01,
        sync_deadline: float = 120.0,
    ) -> None:
        self._client = client
        self._informers = informers
        self._recorder = recorder
        self._clock = clock or SystemClock()
        self._source = configuration_source or FixedConfiguration()
        self._turns = turns or BackgroundTurns()
        self._settings = EngineSettings(
            scheduler_names=scheduler_names,
            gate=gate,
            itself=itself,
            concurrency=concurrency,
            debounce=debounce,
            sync_deadline=sync_deadline,
        )
        self._malformed: dict[tuple[Resource, str | None, str], MalformedObject] = {}
        self.execution: Execution | None = None
        """What is at work, while the engine runs."""
        devices = informers.devices.all() if informers.devices is not None else ()
        self._watched = (*informers.all(), *devices)
        for informer in self._watched:
            informer.on_malformed(self._on_malformed)
            informer.on_malformed_deleted(self._on_malformed_deleted)

    async def run(self) -> None:
        """Schedule until cancelled; the first cycle comes once all informers have synced.

        Raises TimeoutError when one has not synced within `sync_deadline` seconds.
        """
        for informer in self._informers.all():
            await informer.wait_synced(self._settings.sync_deadline)
        logger.info("all informers have synced: scheduling starts")
        parts = (self._client, self._informers, self._recorder, self._clock, self._source, self._settings, self._turns)
        execution = Execution(*parts)
        self.execution = execution
        for found in self._still_malformed():
            execution.mirror.on_malformed(found)
        try:
            await execution.run()
        finally:
            self.execution = None

    def _on_malformed(self, found: MalformedObject) -> None:
        self._malformed[found.resource, found.namespace, found.name] = found
        if self.execution is not None:
            self.execution.mirror.on_malformed(found)

    def _on_malformed_deleted(self, found: MalformedObject) -> None:
        self._malformed.pop((found.resource, found.namespace, found.name), None)
        if self.execution is not None:
            self.execution.mirror.on_malformed_deleted(found)

    def _still_malformed(self) -> list[MalformedObject]:
        shown = {informer.resource: informer for informer in self._watched}
        mended = [key for key in self._malformed if shown[key[0]].get(key[1], key[2]) is not None]
        for key in mended:
            del self._malformed[key]
        return list(self._malformed.values())
