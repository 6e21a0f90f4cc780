"""One engine at work: a model, and everything that feeds it and acts on it.

An Execution is made when the engine starts to lead and thrown away when it stops; nothing in it outlives that but what
it wrote to the API server.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass
from functools import partial

from muster.engine.binder import Binder
from muster.engine.binding_news import BindingNews
from muster.engine.clock import Clock
from muster.engine.configuration_source import ConfigurationSource
from muster.engine.evictor import Evictor
from muster.engine.extender_client import HttpExtenderClient
from muster.engine.loop import SchedulingLoop
from muster.engine.mirror import EngineInformers, Mirror
from muster.engine.node_usage import NodeUsageReader
from muster.engine.pod_status import PodConditionWriter
from muster.engine.podgroup_status import PodGroupWriter
from muster.engine.queue_status import QueueWriter
from muster.engine.references import reference
from muster.kube.background_turns import BackgroundTurns
from muster.kube.client import ApiClient
from muster.kube.events import EventRecorder, ObjectReference
from muster.kube.resource import PODGROUPS, PODS, QUEUES
from muster.scheduler.cache import SchedulerCache
from muster.scheduler.cycle import run_cycle
from muster.scheduler.outcome import Binding, Eviction, Outcome
from muster.scheduler.reasons import describe
from muster.scheduler.specs import NodeUsage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What is ours and how hard we work.

    `scheduler_names` are the schedulerNames of our pods, `gate` the scheduling gate that is ours to remove, `itself`
    the object that events about the configuration are about, `concurrency` how many bindings are posted at a time,
    `debounce` how long (seconds) a burst of changes gathers, `sync_deadline` how long (seconds) the first lists
    may take.
    """

    scheduler_names: tuple[str, ...]
    gate: str
    itself: ObjectReference | None
    concurrency: int
    debounce: float
    sync_deadline: float


class Execution:
    """Wires model, loop and writers together."""

    def __init__(
        self,
        client: ApiClient,
        informers: EngineInformers,
        recorder: EventRecorder,
        clock: Clock,
        source: ConfigurationSource,
        settings: EngineSettings,
        turns: BackgroundTurns,
    ) -> None:
        self._informers = informers
        self._recorder = recorder
        self._source = source
        self._settings = settings
        self._doubt: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.cache = SchedulerCache()
        self.loop = SchedulingLoop(self._cycle, clock, debounce=settings.debounce)
        self.mirror = Mirror(
            self.cache,
            recorder,
            self.loop.wake,
            self._on_doubt,
            scheduler_names=settings.scheduler_names,
            gate=settings.gate,
        )
        self._usage = NodeUsageReader(source, clock, self._on_usage)
        self._extenders = HttpExtenderClient()
        self.binder = Binder(
            client,
            informers.pods,
            clock,
            gate=settings.gate,
            bound=BindingNews(recorder, self._pod_group_of).tell,
            failed=self._on_bind_failed,
            concurrency=settings.concurrency,
            turns=turns,
        )
        self.evictor = Evictor(client, recorder, clock, failed=self._on_evict_failed, pod_group=self._pod_group_of)
        self.pod_groups = PodGroupWriter(client, informers.pod_groups, recorder, clock, turns)
        self.queues = QueueWriter(client, informers.queues, clock, turns)
        self.pod_conditions = PodConditionWriter(client, informers.pods, clock, turns)

    async def run(self) -> None:
        """Mirror, decide and write until cancelled, or until the model raised an exception (which is raised here)."""
        try:
            self.mirror.attach(self._informers)
            self.queues.attach()
            async with asyncio.TaskGroup() as group:
                for part in (self.binder, self.evictor, self.loop):
                    group.create_task(part.run())
                for writer in (self.pod_groups, self.queues, self.pod_conditions):
                    group.create_task(writer.queue.run())
                group.create_task(self._source.watch(self.loop.wake, self._on_configuration_refused))
                group.create_task(self._usage.run())
                group.create_task(self.mirror.devices.run())
                await self._doubt
        finally:
            self.mirror.close()
            self.queues.close()
            self._extenders.close()

    @property
    def idle(self) -> bool:
        """Tell whether nothing waits to be decided, written or answered."""
        writers = (self.pod_groups.queue, self.queues.queue, self.pod_conditions.queue)
        return self.loop.idle and self.binder.idle and self.evictor.idle and all(each.idle for each in writers)

    def _cycle(self, now: float) -> float | None:
        outcome = run_cycle(self.cache, self._source.current, now, self._extenders)
        self._carry_out(outcome)
        return outcome.wake_at

    def _carry_out(self, outcome: Outcome) -> None:
        self.pod_groups.update(outcome.pod_groups)
        self.queues.update(outcome.queues)
        self._complain_of_queues(outcome)
        self._complain_of_orphans(outcome)
        self.pod_conditions.update(outcome.pods)
        self._evict(outcome)
        gangs: defaultdict[str, list[Binding]] = defaultdict(list)
        for binding in outcome.bindings:
            gangs[binding.job].append(binding)
        for job, bindings in gangs.items():
            # The nodes held for companions must outlive us before anything of the gang is irrevocable.
            held = self.pod_groups.holds_back(job)
            self.binder.post(bindings, after=partial(self.pod_groups.written, job) if held else None)

    def _complain_of_queues(self, outcome: Outcome) -> None:
        for name, status in outcome.queues.items():
            shown = self._informers.queues.get(None, name)
            if status.problem is not None and shown is not None:
                about = reference(QUEUES, shown.metadata)
                text = describe(status.problem)
                self._recorder.event(about, "Warning", status.problem.code.value, text, "Scheduling")

    def _complain_of_orphans(self, outcome: Outcome) -> None:
        for key, reason in outcome.orphans.items():
            shown = self._informers.pods.get(*key.split("/", 1))
            if shown is not None:
                about = reference(PODS, shown.metadata)
                self._recorder.event(about, "Warning", reason.code.value, describe(reason), "Scheduling")

    def _evict(self, outcome: Outcome) -> None:
        """For whom room is made must be on the server before it is made, or a restart would give it to others."""
        promised: defaultdict[str, list[str]] = defaultdict(list)
        for task in outcome.pipelined:
            promised[task.job].append(f"{task.namespace}/{task.pod}")
        takers: defaultdict[str, list[Eviction]] = defaultdict(list)
        for eviction in outcome.evictions:
            takers[eviction.by].append(eviction)
        for by, evictions in takers.items():
            self.evictor.post(evictions, after=partial(self._promise, by, promised[by]))

    async def _promise(self, job: str, pods: list[str]) -> bool:
        """Have the room that is promised to these pods of `job` noted on the server; false when it can't be.

        After a restart no promise is believed to a gang that is not admitted there. Pods may have no PodGroup.
        """
        has_group = bool(pods) and self._pod_group_of(job) is not None
        admitted = await self.pod_groups.written(job) if has_group else True
        return admitted and await self.pod_conditions.written(pods)

    def _pod_group_of(self, key: str) -> ObjectReference | None:
        namespace, _, name = key.partition("/")
        group = self._informers.pod_groups.get(namespace, name)
        if group is None:
            return None
        return reference(PODGROUPS, group.metadata)

    def _on_usage(self, node: str, usage: NodeUsage) -> None:
        self.cache.set_node_usage(node, usage)
        self.loop.wake()

    def _on_bind_failed(self, binding: Binding, complaint: str) -> None:
        about = ObjectReference("v1", "Pod", binding.namespace, binding.pod, binding.task_uid)
        message = f"The binding to {binding.node} failed: {complaint}"
        self._recorder.event(about, "Warning", "FailedBinding", message, "Binding")
        self.cache.bind_failed(binding.task_uid)
        self.loop.wake()

    def _on_evict_failed(self, eviction: Eviction, _complaint: str) -> None:
        self.cache.evict_failed(eviction.task_uid)
        self.loop.wake()

    def _on_doubt(self, error: Exception) -> None:
        """A model in doubt is thrown away with all of this, and made anew from the API server."""
        if not self._doubt.done():
            self._doubt.set_exception(error)

    def _on_configuration_refused(self, problem: str) -> None:
        if self._settings.itself is not None:
            self._recorder.event(self._settings.itself, "Warning", "InvalidConfiguration", problem, "Configuring")
