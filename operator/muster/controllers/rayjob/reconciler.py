"""One look at a RayJob: read, judged, and moved from state to state as far as it goes at once.

Each state has one function that does what is to be done in it and may store another state. Everything that a state
needs to know is in the status and in the objects that exist, so a look may end between any two writes (P5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from muster.api.errors import FieldProblem
from muster.api.rayjob import JobDeploymentStatus as State
from muster.api.rayjob import RayJob
from muster.controllers.children import NotOurs
from muster.controllers.context import Context
from muster.controllers.per_version import PerVersion, stored_version, written_version
from muster.controllers.primary import being_deleted, managed_elsewhere, say_invalid, understand
from muster.controllers.rayjob.finalizer import let_go
from muster.controllers.rayjob.finished import clean_up
from muster.controllers.rayjob.initializing import initialize
from muster.controllers.rayjob.interactive import await_job_id
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.malformed import REFUSED_IN, refuse_malformed
from muster.controllers.rayjob.named_cluster import names_no_cluster
from muster.controllers.rayjob.new import begin
from muster.controllers.rayjob.running import follow
from muster.controllers.rayjob.stopped import recover, refuse, resume, retry, suspend
from muster.controllers.rayjob.unknown import stand_still
from muster.controllers.runner import Requeue
from muster.controllers.setbacks import Setbacks
from muster.kube.errors import ApiError, Conflict, Forbidden, Invalid
from muster.kube.resource import RAYJOBS
from muster.ray.validation import validate_ray_job
from muster.ray.validation.made import made_of_ray_job

_STEPS: Mapping[str, Callable[[Look], Awaitable[Requeue | None]]] = {
    State.NEW: begin,
    State.INITIALIZING: initialize,
    State.WAITING: await_job_id,
    State.RUNNING: follow,
    State.COMPLETE: clean_up,
    State.FAILED: clean_up,
    State.SUSPENDING: suspend,
    State.SUSPENDED: resume,
    State.RETRYING: retry,
    State.VALIDATION_FAILED: recover,
}
_MOST_STEPS = 10
_HINDERED_SECONDS = 5.0
"""When to try again what was passed over."""
_NAME_TAKEN_SECONDS = 5.0
"""How often to see whether a name that somebody else has got is free; what is not watched is tried less often."""


class RayJobReconciler:
    """Brings RayJobs to their end."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._understood: PerVersion[RayJob] = PerVersion()
        self._problems: PerVersion[list[FieldProblem]] = PerVersion()
        self._setbacks = Setbacks(context.clock)

    async def reconcile(self, key: str) -> Requeue | None:
        """Look at the job "namespace/name"."""
        self._context.job_interests.clear(key)
        raw = await self._context.primaries[RAYJOBS].read(key)
        # One that was given to another controller while its Ray job ran has our finalizer yet, which nobody else drops.
        given_away = raw is not None and managed_elsewhere(raw) and not being_deleted(raw)
        if raw is None or given_away:
            self._context.known_jobs.gone(key)
            self._understood.forget(key)
            self._problems.forget(key)
            self._setbacks.over(key)
            self._context.job_settling.over(key)
            self._context.job_cluster_problems.forget(key)
            self._context.recent_answers.forget(key)
            self._context.setbacks_in_passing.pop(key, None)
            return None
        job = self._understood.of(key, stored_version(raw), partial(understand, self._context, RayJob, raw))
        if being_deleted(raw):
            return await let_go(self._context, raw, job)
        if job is None:
            return await refuse_malformed(self._context, raw)
        look = Look(self._context, raw, job)
        look.figures()
        return await self._go_on(key, look)

    async def _go_on(self, key: str, look: Look) -> Requeue | None:
        for _ in range(_MOST_STEPS):
            state = look.state
            try:
                requeue = await self._step(key, look)
            except NotOurs as conflict:
                return await _wait_for_name(look, conflict)
            except (Invalid, Forbidden) as refusal:
                await _tell_refusal(look, look.say_refused(refusal))
                raise
            except Conflict:
                raise
            except ApiError as error:
                if self._setbacks.last(look.key):
                    await _tell_refusal(look, look.say_failing(error))
                raise
            if look.state == state:
                self._setbacks.over(look.key)
                return _soon(requeue) if look.hindered else requeue
        return Requeue(0)

    async def _step(self, key: str, look: Look) -> Requeue | None:
        if await names_no_cluster(look):
            return None
        written = written_version(look.job.metadata)
        look.problems = self._problems.of(key, written, partial(validate_ray_job, look.job)) or []
        if look.state in REFUSED_IN:
            look.problems = look.problems or await self._refused_templates(look)
            if look.problems:
                return await refuse(look, look.problems)
        _tell(look)
        return await _STEPS.get(look.state, stand_still)(look)

    async def _refused_templates(self, look: Look) -> list[FieldProblem]:
        made = made_of_ray_job(look.job, self._context.options.pods)
        return await self._context.templates.problems(look.job.metadata.namespace, made)


def _soon(requeue: Requeue | None) -> Requeue:
    return Requeue(min(_HINDERED_SECONDS, requeue.after if requeue is not None else _HINDERED_SECONDS))


def _tell(look: Look) -> None:
    say_invalid(look.context, look.job, look.problems)
    look.context.say_unreadable(look.job)


async def _wait_for_name(look: Look, conflict: NotOurs) -> Requeue:
    """Something of a former RayJob of this name may still be on its way out: then this ends by itself."""
    look.say("Warning", "NameTaken", str(conflict), "Create", subject=conflict.name)
    if look.state == State.INITIALIZING:  # later the message is Ray's, or says how the job ended
        await look.write(message=str(conflict))
    return Requeue(_NAME_TAKEN_SECONDS)


async def _tell_refusal(look: Look, message: str) -> None:
    if look.state in (State.NEW, State.INITIALIZING, State.SUSPENDING):
        await look.write(message=message)
