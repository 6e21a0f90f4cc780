"""The end of a cluster whose state is in a Redis: a finalizer holds it until a Job has cleared that state out.

The finalizer is there before any pod. Once the cluster is deleted its pods go (Kubernetes collects them only when the
cluster itself is gone), the end of the head is waited for, since it would write its state again, and then the Job runs.
Whatever happens, the cluster is let go `DELETION_SECONDS` after its deletion, or after as many seconds as its
annotation `ray.io/gcs-ft-deletion-timeout` says; at once in a namespace that is deleted too, where no Job can be made.

Should the operator be gone for good,
`kubectl patch raycluster NAME --type=merge -p '{"metadata":{"finalizers":null}}'` frees the object by hand.
"""

from __future__ import annotations

import logging

from muster.api.errors import MalformedResource
from muster.api.raycluster import RayCluster
from muster.controllers.children import NotOurs
from muster.controllers.clock import seconds_of
from muster.controllers.context import Context
from muster.controllers.primaries import Raw
from muster.controllers.primary import in_words
from muster.controllers.raycluster.place import keeps_place_until, not_stuck
from muster.controllers.raycluster.suspend import give_everything_back
from muster.controllers.runner import Requeue
from muster.kube.errors import AlreadyExists, ApiError, Forbidden, Invalid, NotFound
from muster.kube.events import EventType
from muster.kube.objects import Job, controller_of
from muster.kube.resource import JOBS, RAYCLUSTERS
from muster.quantities import QuantityError
from muster.ray import names
from muster.ray.fault_tolerance import outlives_its_head, storage_namespace
from muster.ray.labels import FT_DELETION_TIMEOUT, REDIS_CLEANUP_OF, REDIS_FINALIZER
from muster.ray.pod_health import condition, is_head, is_terminating
from muster.ray.redis_cleanup import cleanup_job
from muster.ray.validation import head_pod_problems

logger = logging.getLogger(__name__)

DELETION_SECONDS = 300.0
_LOOK_AGAIN_SECONDS = 5.0
_IN_FOREGROUND = "foregroundDeletion"
_PODS_GO_ON = "orphan"


async def hold_finalizer(context: Context, raw: Raw, cluster: RayCluster) -> Raw:
    """State may be in the Redis from now on. Returns the cluster as it is stored then."""
    finalizers = cluster.metadata.finalizers or []
    wanted = context.options.redis_cleanup and outlives_its_head(cluster)
    if not wanted or REDIS_FINALIZER in finalizers:
        return raw
    return await _patch_finalizers(context, raw, [*finalizers, REDIS_FINALIZER])


async def let_go(context: Context, raw: Raw) -> Requeue | None:
    """The cluster is being deleted: go on with clearing up, or drop the finalizer. Everybody else's is left alone."""
    finalizers: list[str] = raw["metadata"].get("finalizers") or []
    if REDIS_FINALIZER not in finalizers:
        return None
    try:
        cluster = RayCluster.parse(raw)
    except MalformedResource:  # where its Redis is nobody can tell
        logger.warning("RayCluster %s/%s is deleted as it is: it can't be read", *_key(raw))
        cluster = None
    if cluster is not None and context.options.redis_cleanup and _PODS_GO_ON not in finalizers:
        requeue = await _Ending(context, raw, cluster).go_on() if outlives_its_head(cluster) else None
        if requeue is not None:
            return requeue
    await _drop_finalizer(context, raw)
    return None


class _Ending:
    """One look at a cluster that is being deleted."""

    def __init__(self, context: Context, raw: Raw, cluster: RayCluster) -> None:
        self._context = context
        self._cluster = cluster
        self._now = context.clock.now()
        self._until = (seconds_of(raw["metadata"]["deletionTimestamp"]) or self._now) + _patience(cluster)
        self._in_foreground = _IN_FOREGROUND in (raw["metadata"].get("finalizers") or [])

    async def go_on(self) -> Requeue | None:
        """Take the next step; None when there is nothing to wait for any more."""
        error = await self._give_everything_back()
        if self._now >= self._until:
            self._say_forced()
            return None
        if error is not None:
            raise error
        ends = self._heads_until()
        if ends:
            return self._again_in(min([*ends, self._until]) - self._now)
        job = await self._job()
        if job is None:
            return await self._create()
        if not _is_ours(job, self._cluster):
            self._say("Warning", "NameTaken", str(NotOurs(JOBS, job.metadata, self._cluster)), "Create")
            return self._again_in(_LOOK_AGAIN_SECONDS)
        ended = _end_of(job)
        if ended is None:
            return await self._wait_for(job)
        if ended == "Failed":
            self._say_left_behind()
        return None

    async def _wait_for(self, job: Job) -> Requeue:
        why = await self._context.refused_pods.of(job)
        if why is not None:
            message = f"The API server refuses the pod of the Redis cleanup Job {job.key}: {why}"
            self._say("Warning", "FailedToCreateRedisCleanupJob", message, "Create")
        return self._again_in(self._pause(job) if job.status.active else _LOOK_AGAIN_SECONDS)

    async def _give_everything_back(self) -> ApiError | None:
        """What went wrong with it, if anything did: that must not hold the cluster beyond its time."""
        try:
            failure = await give_everything_back(self._context, self._cluster)
        except ApiError as error:
            return error
        return None if failure is None else failure[1]

    async def _create(self) -> Requeue | None:
        key = f"{self._cluster.metadata.namespace}/{names.redis_cleanup_job(self._cluster.metadata.name)}"
        problems = head_pod_problems(self._cluster)
        if problems:  # the spec was spoilt after the finalizer had been put there
            return self._refused(key, in_words(problems))
        try:
            manifest = cleanup_job(self._cluster, self._context.options.pods, owned=not self._in_foreground)
            created = await self._context.jobs.create(manifest)
        except AlreadyExists:
            return self._again_in(_LOOK_AGAIN_SECONDS)
        except (Forbidden, Invalid, QuantityError) as refusal:
            if isinstance(refusal, Forbidden) and _namespace_goes(refusal):
                return None
            return self._refused(key, str(refusal))
        message = f"Created Redis cleanup Job {key}"
        self._say("Normal", "CreatedRedisCleanupJob", message, "Create", change=created.metadata.uid)
        return self._again_in(self._pause(created))

    def _refused(self, key: str, why: str) -> Requeue:
        message = f"Failed to create Redis cleanup Job {key}: {why}"
        self._say("Warning", "FailedToCreateRedisCleanupJob", message, "Create")
        return self._again_in(_LOOK_AGAIN_SECONDS)

    async def _job(self) -> Job | None:
        meta, jobs = self._cluster.metadata, self._context.jobs
        name = names.redis_cleanup_job(meta.name)
        return jobs.get(meta.namespace, name) or await jobs.read(meta.namespace, name)

    def _heads_until(self) -> list[float]:
        """Until when each head that is left may still write (Unix seconds; infinite for one not yet asked to go)."""
        pods = not_stuck(self._context.pods_of(self._cluster), self._now)
        return [keeps_place_until(pod) if is_terminating(pod) else self._until for pod in pods if is_head(pod)]

    def _pause(self, job: Job) -> float:
        """How long to leave the Job alone. The changes of one without an owner lead nobody here."""
        return _LOOK_AGAIN_SECONDS if controller_of(job.metadata) is None else self._until - self._now

    def _again_in(self, seconds: float) -> Requeue:
        return Requeue(max(0.0, min(seconds, self._until - self._now)))

    def _say_forced(self) -> None:
        message = (
            f"RayCluster {self._cluster.metadata.name} is let go after {_patience(self._cluster):g} s, "
            f"though its state in the Redis ({storage_namespace(self._cluster)}) may not have been cleared out"
        )
        self._say("Warning", "ForceDeletedStuckCluster", message, "Cleanup")

    def _say_left_behind(self) -> None:
        namespace = storage_namespace(self._cluster)
        message = f"The Redis cleanup Job has failed: state of storage namespace {namespace} may be left in the Redis"
        self._say("Warning", "FailedRedisCleanup", message, "Cleanup")

    def _say(self, kind: EventType, reason: str, message: str, action: str, change: str | None = None) -> None:
        self._context.say(self._cluster, kind, reason, message, action, change=change)


def _patience(cluster: RayCluster) -> float:
    """Seconds from the deletion on; what is no whole number above 0 does not count."""
    text = cluster.metadata.annotations.get(FT_DELETION_TIMEOUT, "").strip()
    return float(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 10 and int(text) else DELETION_SECONDS


def _is_ours(job: Job, cluster: RayCluster) -> bool:
    return job.metadata.annotations.get(REDIS_CLEANUP_OF) == cluster.metadata.uid


def _end_of(job: Job) -> str | None:
    """Complete or Failed; None for a Job that runs."""
    for kind in ("Complete", "Failed"):
        found = condition(job.status.conditions, kind)
        if found is not None and found.status == "True":
            return kind
    return None


def _namespace_goes(refusal: Forbidden) -> bool:
    """Whether the API server makes nothing any more because the namespace is being deleted."""
    causes = refusal.details.get("causes")
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == "NamespaceTerminating" for cause in causes
    )


async def _drop_finalizer(context: Context, raw: Raw) -> None:
    rest = [one for one in raw["metadata"].get("finalizers") or [] if one != REDIS_FINALIZER]
    try:
        await _patch_finalizers(context, raw, rest)
    except NotFound:
        return


async def _patch_finalizers(context: Context, raw: Raw, finalizers: list[str]) -> Raw:
    return await context.primaries[RAYCLUSTERS].patch(raw, {"metadata": {"finalizers": finalizers or None}})


def _key(raw: Raw) -> tuple[str, str]:
    return raw["metadata"]["namespace"], raw["metadata"]["name"]
