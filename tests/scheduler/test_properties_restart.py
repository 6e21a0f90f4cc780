"""P5 over random histories: what a scheduler makes of what the API server shows when it starts anew."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.cache import SchedulerCache
from muster.scheduler.job import JobInfo
from muster.scheduler.resources import Resources
from muster.scheduler.specs import PodGroupSpec
from muster.testing import Cluster, companion
from tests.scheduler.test_properties import assert_promises, settle
from tests.scheduler.worlds import STEPS, History, Step, World, crowded_worlds, worlds

PROFILE = settings(max_examples=60)
NOTHING = Resources()
SUBMITTER = companion(cpu=0.5)


def with_submitters(world: World) -> World:
    """The same, but every gang will need a submitter."""
    specs = [replace(each, companions=(SUBMITTER,)) if isinstance(each, PodGroupSpec) else each for each in world.specs]
    return World(specs, world.configuration)


def restarted(cluster: Cluster) -> Cluster:
    """The same cluster, as a scheduler reads it that has just started."""
    cache = cluster.cache
    again = Cluster(configuration=cluster.configuration, now=cluster.now)
    again.add(*(node.spec for node in cache.nodes.values() if node.spec is not None))
    again.add(*(queue.spec for queue in cache.queues.values() if queue.spec is not None))
    again.add(*cache.priority_classes.values())
    again.add(*(as_written(job) for job in cache.jobs.values() if not job.synthetic))
    again.add(*(replace(task.spec, verdict=task.verdict) for task in cache.tasks.values()))
    return again


def as_written(job: JobInfo) -> list[PodGroupSpec]:
    """The job's PodGroup, if there is one, with the status that was written last."""
    said = job.published
    if job.spec is None or said is None:
        return [] if job.spec is None else [job.spec]
    return [
        replace(
            job.spec,
            phase=said.phase,
            conditions=said.conditions,
            running=said.running,
            succeeded=said.succeeded,
            failed=said.failed,
            companion_nodes=said.companions,
            broken_since=said.broken_since,
            minimum_met=said.minimum_met,
            wait=job.wait,
        )
    ]


def held_places(cache: SchedulerCache) -> dict[str, str]:
    """Where room is held for companions of gangs that run, by the placeholder's uid."""
    return {
        task.uid: task.node
        for job in cache.jobs.values()
        for task in job.placeholders.values()
        if task.node is not None and job.is_ready()
    }


@PROFILE
@given(worlds() | crowded_worlds(), st.lists(STEPS, max_size=10))
def test_a_restart_breaks_no_promise_and_takes_no_submitters_place(world: World, steps: list[Step]) -> None:
    history = History(with_submitters(world).cluster())
    history.cluster.cycle()
    for step in steps:
        history.play(step)
    settle(history)
    before = held_places(history.cluster.cache)
    again = restarted(history.cluster)
    assert_promises(again, again.cycle())
    after = held_places(again.cache)
    for uid, name in before.items():
        node = history.cluster.cache.nodes[name]
        # What is not room by now (a node shrank, or was taken) is no place any more.
        assert after.get(uid) == name or node.spec is None or not NOTHING.less_equal(node.idle), uid


@PROFILE
@given(worlds() | crowded_worlds(), st.lists(STEPS, max_size=10))
def test_after_a_restart_the_same_gangs_are_fragments(world: World, steps: list[Step]) -> None:
    """P1: for as long as before, and below the same minimum.

    Not one of which nothing is left but pods on nodes that were deleted: it holds nothing. After a restart it is one
    below its minimum on nodes that may only be unreadable, and is taken down, as Kubernetes is about to do anyway.
    """
    history = History(world.cluster())
    history.cluster.cycle()
    for step in steps:
        history.play(step)
    settle(history)
    again = restarted(history.cluster)
    again.cycle()
    for key, job in history.cluster.cache.jobs.items():
        other = again.cache.jobs[key]
        if job.lost and job.placed == job.lost.total():
            continue
        assert other.broken_since == job.broken_since, key
        if job.placed and job.spec is not None:
            assert other.held_min == job.held_min, key
