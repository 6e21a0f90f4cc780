"""One scheduling cycle: a function of the model, the configuration and the time (P4).

Open a session, wake what the last changes could help, watch over broken gangs, run the configured actions, close the
session, and say what changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from muster.scheduler.actions import ACTIONS
from muster.scheduler.cache import SchedulerCache
from muster.scheduler.companion_places import take_former_places, take_held_places
from muster.scheduler.conf import SchedulerConfiguration, build_framework
from muster.scheduler.eligibility import impossible
from muster.scheduler.explain import look_beyond_quota
from muster.scheduler.extender_client import ExtenderClient
from muster.scheduler.framework import Framework
from muster.scheduler.hierarchy import sum_up_root
from muster.scheduler.hold_plan import note_starved, plan_holds
from muster.scheduler.job import JobInfo
from muster.scheduler.kept_room import wake
from muster.scheduler.nominations import restore
from muster.scheduler.outcome import Outcome, PodGroupStatus, QueueStatus
from muster.scheduler.parking import BY_SHAPE, Parking, Relief
from muster.scheduler.placing import gang_key
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.repair import (
    expire_reservation,
    next_deadline,
    note_broken,
    release_room_of_the_unplaced,
    watch_over,
)
from muster.scheduler.session import Session
from muster.scheduler.specs import Phase, PodVerdict, TaskStatus
from muster.scheduler.status import find_reason, pod_verdicts, queue_status, update_status, waits
from muster.scheduler.waiting import starves_at, wait_for


@dataclass(slots=True)
class _Memory:
    """What the cycle keeps in the cache from one run to the next."""

    configuration: SchedulerConfiguration
    framework: Framework
    deadlines: dict[str, float]
    world: object = None
    """How large queues, cluster and nodes were when the hopeless were judged."""


def run_cycle(
    cache: SchedulerCache,
    configuration: SchedulerConfiguration,
    now: float,
    extenders: ExtenderClient | None = None,
) -> Outcome:
    """Decide. `now` is Unix seconds; `extenders`, the same in each cycle, is how programs outside are asked.

    Afterwards the cache holds what was decided (Binding, Releasing) and waits for the engine's word on it.
    """
    memory = _remember(cache, configuration, extenders)
    session = Session(cache, memory.framework, configuration, now)
    for plugin in memory.framework.plugins:
        plugin.on_cycle_start(session)
    _open(session, memory)
    session.holds.begin()
    for name in configuration.actions:
        ACTIONS[name](session)
    session.holds.end()
    for plugin in memory.framework.plugins:
        plugin.on_session_close(session)
    for job in session.candidates:
        look_beyond_quota(session, job)
    pipelined = session.pipelined()
    session.close()
    for job in cache.changed.values():
        # A gang that this cycle has evicted whole; who gained by it may need no more than that.
        session.look_again = release_room_of_the_unplaced(session, job) or session.look_again
    session.settle()
    pod_groups, pods, orphans = _say_what_changed(session)
    for plugin in memory.framework.plugins:
        plugin.on_cycle_end(session)
    _park(session)
    _note_deadlines(session, memory)
    cache.settle()
    cache.changed.clear()
    return Outcome(
        bindings=tuple(session.bindings),
        evictions=tuple(session.evictions),
        pipelined=pipelined,
        pod_groups=pod_groups,
        queues=_changed_queues(session),
        pods=pods,
        orphans=orphans,
        wake_at=_wake_at(session, memory),
    )


def _remember(
    cache: SchedulerCache, configuration: SchedulerConfiguration, extenders: ExtenderClient | None = None
) -> _Memory:
    """The plugins of the last cycle, or new ones when the configuration has changed; then everybody is looked at."""
    memory = cache.memory
    if isinstance(memory, _Memory) and memory.configuration == configuration:
        return memory
    memory = cache.memory = _Memory(configuration, build_framework(configuration, extenders), {})
    cache.relief.everything = True
    for plugin in memory.framework.plugins:
        plugin.attach(cache)
    cache.devices.count_in_queues(on=any(plugin.counts_devices for plugin in memory.framework.plugins))
    cache.index.mention(memory.framework.labels)
    cache.look_out(memory.framework.outlooks)
    cache.rivals.clear()
    for queue in cache.queues.values():
        queue.deserved = None
    cache.changed.update(cache.jobs)
    return memory


def framework_of(cache: SchedulerCache, configuration: SchedulerConfiguration) -> Framework:
    """The plugins with which the last cycle ran."""
    return _remember(cache, configuration).framework


def _open(session: Session, memory: _Memory) -> None:
    """Look at what changed and at what is due, before the actions run."""
    cache = session.cache
    cache.index.use(session.framework.judge)
    cache.queue_the_groupless()
    cache.settle_tree()
    cache.leaving.look(cache, session.now, session.configuration.admission_timeout)
    due = [cache.jobs[key] for key, at in memory.deadlines.items() if at <= session.now and key in cache.jobs]
    for job in due:
        cache.touch(job)
    looked_at = cache.changed.copy()
    for job in _in_order(looked_at.values()):
        if job.phase is Phase.COMPLETED and job.count(TaskStatus.PENDING) and not (job.ready and job.is_ready()):
            job.phase = Phase.PENDING
        release_room_of_the_unplaced(session, job)
        expire_reservation(session, job)
    _judge_hopeless(session, memory, looked_at)
    cache.settle()
    for job in _in_order(looked_at.values()):
        watch_over(session, job)
        take_former_places(session, job)
        take_held_places(session, job)
    cache.has_begun = True
    for plugin in session.framework.plugins:
        plugin.on_session_open(session)
    restore(session)
    note_starved(session, [*looked_at.values(), *due])
    plan_holds(session)
    session.kept.begin()
    relief, cache.relief = cache.relief, Relief()
    wake(session, relief)
    session.candidates = _in_order(cache.waiting.values())
    for job in session.candidates:
        job.wanting_nodes = {}


def _judge_hopeless(session: Session, memory: _Memory, looked_at: dict[str, JobInfo]) -> None:
    """Tell who can't be placed at all before parts are shared out: who has changed, and after a change of the cluster
    all who could not before.
    """
    cache = session.cache
    world = (cache.total.key(), cache.tree_version, cache.index.makes_version)
    jobs = looked_at if world == memory.world else {**looked_at, **cache.hopeless}
    memory.world = world
    for job in jobs.values():
        cache.note_never(job, impossible(session, job) if waits(job) else None)


def _in_order(jobs: Iterable[JobInfo]) -> list[JobInfo]:
    """Jobs by age: the order of events decides nothing."""
    return sorted(jobs, key=lambda job: job.age_order)


def _say_what_changed(
    session: Session,
) -> tuple[dict[str, PodGroupStatus], dict[str, PodVerdict], dict[str, Reason]]:
    cache = session.cache
    pod_groups: dict[str, PodGroupStatus] = {}
    pods: dict[str, PodVerdict] = {}
    orphans: dict[str, Reason] = {}
    looked_at = {job.key: job for job in session.candidates}
    for job in _in_order({**cache.changed, **looked_at}.values()):
        note_broken(session, job)
        if job.parked is None:
            _note_reason(session, job)
        pods.update(pod_verdicts(job))
        if job.spec is None:
            if job.reason is not None and job.pending and job.reason != job.told:
                job.told = job.reason
                orphans[min(job.pending.values(), key=lambda task: task.order).key] = job.reason
            continue
        status = update_status(session, job)
        if status != job.published and not job.synthetic:
            job.published = status
            pod_groups[job.key] = status
    return pod_groups, pods, orphans


def _note_reason(session: Session, job: JobInfo) -> None:
    reason = find_reason(session, job)
    job.wait = wait_for(job, reason, session.now)
    job.reason = replace(reason, since=job.wait.since) if reason is not None and job.wait is not None else None
    if job.wait is None or not job.wait.for_room:
        session.cache.starved.pop(job.key, None)


def _park(session: Session) -> None:
    """Leave refused gangs alone until something that could help happens."""
    cache = session.cache
    cache.reserving = {
        key: session.kept.hand_over(job) for key, job in session.reserving.items() if key not in cache.nominated
    }
    for job in session.candidates:
        if not waits(job):
            cache.waiting.pop(job.key, None)
            continue
        reasons = [*session.findings.get(job.key, ()), *([job.reason] if job.reason else [])]
        if job.never is not None:
            reasons = [job.never]  # whatever else there is to say, nothing helps as long as this holds
        wakes = frozenset(wake for reason in reasons for wake in reason.wakes)
        if job.key in session.hunted and job.never is None:
            wakes |= {Wake.VICTIMS}
        if job.key in session.late:
            session.look_again = True
            continue
        if job.key in session.reserving or (job.phase is Phase.PENDING and not session.findings.get(job.key)):
            continue
        if job.reason is not None and job.reason.code is not Code.WAITING_FOR_TURN:
            cache.waiting.pop(job.key, None)
            by_shape = wakes & BY_SHAPE
            shapes = {task.shape.id: task.shape for task in job.pending.values()} if by_shape else {}
            shapes.update((task.shape.id, task.shape) for task in job.companions_pending())
            blocking = {reason.queue for reason in reasons if reason.queue and Wake.QUEUE in reason.wakes}
            parking = Parking(
                wakes, frozenset({job.queue.name, *blocking}), tuple(shapes[key] for key in sorted(shapes))
            )
            alone = job.ready or job.broken_since is not None or job.key in cache.rivals.losers
            alone = alone or session.holds.of(job) is not None
            like = job.key if alone else (gang_key(job), session.framework.kind(job))
            cache.lot.park(job, parking, like, session.job_key(job))


def _note_deadlines(session: Session, memory: _Memory) -> None:
    for job in {**session.cache.changed, **{job.key: job for job in session.candidates}}.values():
        deadlines = session.framework.job_deadlines(session, job)
        own = next_deadline(session, job)
        if own is not None:
            deadlines.append(own)
        hungry = starves_at(session, job) if job.reason is not None else None
        if hungry is not None and hungry > session.now:
            deadlines.append(hungry)
        if deadlines:
            memory.deadlines[job.key] = min(deadlines)
        else:
            memory.deadlines.pop(job.key, None)


def _changed_queues(session: Session) -> dict[str, QueueStatus]:
    changed: dict[str, QueueStatus] = {}
    sum_up_root(session.cache.queues)
    for name, queue in sorted(session.cache.queues.items()):
        if queue.spec is None:
            continue
        status = queue_status(session, queue)
        if status != queue.published:
            queue.published = status
            changed[name] = status
    return changed


def _wake_at(session: Session, memory: _Memory) -> float | None:
    """Now, when this cycle itself made room or work for the next; else the next deadline."""
    cache = session.cache
    if (cache.relief and cache.lot.jobs) or session.look_again:
        return session.now
    for key in [key for key in memory.deadlines if key not in cache.jobs]:
        del memory.deadlines[key]
    ends = [hold.until for hold in cache.holds if hold.until is not None and hold.until > session.now]
    overdue = cache.leaving.deadline(session.configuration.admission_timeout)
    if overdue is not None and (cache.reserving or cache.nominated or cache.holds):
        ends.append(overdue)
    return min([*memory.deadlines.values(), *session.framework.deadlines(session), *ends], default=None)
