"""Cycles, and what happens between them.

A cluster carries out what a cycle decided: bound pods run, evicted ones leave. Pods that said how long they run end
when that time is over. Nothing else changes, but for the clock. Changes are made to the pods as objects and reach the
model by the decoders, as those of a real cluster would.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import msgspec

from muster.engine.delegation import delegation_of
from muster.engine.times import rfc3339, unix_seconds
from muster.engine.wire_keys import DELEGATED_AT
from muster.kube.objects import Pod
from muster.scheduler.conf import SchedulerConfiguration
from muster.scheduler.cycle import run_cycle
from muster.scheduler.inquiry import Inquiry
from muster.scheduler.outcome import Outcome
from muster.scheduler.specs import TaskStatus
from muster.simulator.model import GATE, Model


@dataclass(frozen=True, slots=True)
class Pace:
    """How time passes: `now` (Unix seconds) of the first cycle, `step` seconds between two.

    A pod that leaves is gone after `grace` cycles, the one in which it was evicted counted.
    """

    now: float
    step: float = 1.0
    grace: int = 1


@dataclass(slots=True)
class Simulation:
    """A cluster that obeys. `cycle` decides, `advance` makes that true."""

    model: Model
    configuration: SchedulerConfiguration
    pace: Pace
    now: float = field(init=False)
    _leaving: dict[str, int] = field(default_factory=dict, init=False)
    _starting: dict[str, str] = field(default_factory=dict, init=False)
    _ends: list[tuple[float, str]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self.now = self.pace.now
        for uid, pod in list(self.model.pods.items()):
            if pod.metadata.deletion_timestamp is not None:
                self._leaving[uid] = self.pace.grace
            elif pod.spec.node_name is not None and pod.status.phase in (None, "Pending"):
                self._starting[uid] = pod.spec.node_name
            elif pod.status.phase == "Running" and self._runtime(uid) is not None:
                self._resume(uid, pod)

    def _resume(self, uid: str, pod: Pod) -> None:
        """A pod runs already; where nothing says since when, it is since it was made, or else since now."""
        started = pod.status.start_time or pod.metadata.creation_timestamp or rfc3339(self.now)
        if pod.status.start_time is None:
            self.model.set_pod(_changed(pod, status=_changed(pod.status, start_time=started)))
        self._note_end(uid, unix_seconds(started))

    def cycle(self) -> Outcome:
        """Decide."""
        outcome = run_cycle(self.model.cache, self.configuration, self.now)
        for binding in outcome.bindings:
            self._starting[binding.task_uid] = binding.node
        for eviction in outcome.evictions:
            self._leaving.setdefault(eviction.task_uid, self.pace.grace)
        return outcome

    def inquiry(self) -> Inquiry:
        """Ask about what waits after a cycle."""
        return Inquiry(self.model.cache, self.configuration, self.now)

    def advance(self) -> None:
        """Carry out what was decided, and let a step of time pass."""
        self._let_leave()
        self._let_run()
        self.now += self.pace.step
        self._let_end()

    def _let_leave(self) -> None:
        for uid, cycles in list(self._leaving.items()):
            self._starting.pop(uid, None)
            if cycles <= 1:
                self.model.remove_pod(uid)
                del self._leaving[uid]
                continue
            self._leaving[uid] = cycles - 1
            pod = self.model.pods[uid]
            if pod.metadata.deletion_timestamp is None:
                metadata = _changed(pod.metadata, deletion_timestamp=rfc3339(self.now))
                self.model.set_pod(_changed(pod, metadata=metadata))

    def _let_run(self) -> None:
        for uid, node in self._starting.items():
            pod = self._delegated(self.model.pods[uid])
            spec = _changed(pod.spec, node_name=node, scheduling_gates=[])
            status = _changed(pod.status, phase="Running", start_time=rfc3339(self.now), conditions=[])
            self.model.set_pod(_changed(pod, spec=spec, status=status))
            self._note_end(uid, self.now)
        self._starting.clear()

    def _delegated(self, pod: Pod) -> Pod:
        """A pod that the default scheduler binds for us says so."""
        if delegation_of(pod, GATE) is None:
            return pod
        notes = {**pod.metadata.annotations, DELEGATED_AT: rfc3339(self.now)}
        changed: Pod = _changed(pod, metadata=_changed(pod.metadata, annotations=notes))
        return changed

    def _note_end(self, uid: str, started: float) -> None:
        runtime = self._runtime(uid)
        if runtime is not None:
            heapq.heappush(self._ends, (started + runtime, uid))

    def _runtime(self, uid: str) -> float | None:
        task = self.model.cache.tasks.get(uid)
        if task is None:
            return None
        return task.job.runtime_of(task) if task.job is not None else task.spec.expected_runtime

    def _let_end(self) -> None:
        while self._ends and self._ends[0][0] <= self.now:
            _, uid = heapq.heappop(self._ends)
            task = self.model.cache.tasks.get(uid)
            if task is not None and task.status is TaskStatus.RUNNING:
                self._end(self.model.pods[uid])

    def _end(self, pod: Pod) -> None:
        self.model.set_pod(_changed(pod, status=_changed(pod.status, phase="Succeeded")))


def _changed(part: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(part, **fields)
