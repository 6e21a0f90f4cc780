"""One look at a RayJob: the object as it was last read or written, and the only way to write its status."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from muster.api.errors import FieldProblem
from muster.api.rayjob import JobDeploymentStatus, JobStatus, RayJob, RayJobStatus
from muster.controllers.clock import seconds_of, timestamp
from muster.controllers.context import Context
from muster.controllers.excerpt import excerpt
from muster.controllers.job_figures import JobFigures
from muster.controllers.primaries import Raw
from muster.controllers.primary import write_status
from muster.kube.errors import ApiError, Conflict
from muster.kube.events import EventType
from muster.kube.resource import RAYJOBS

_ON_THE_WAY: Final = frozenset({"message", "ray_cluster_status"})
"""Fields of the status that nothing depends on."""


class Look:
    """A RayJob in the hands of its reconciler.

    Every write carries the resourceVersion of what was read, so that two that look at once can't both decide.
    """

    def __init__(self, context: Context, raw: Raw, job: RayJob, read: Callable[[Raw], RayJob] = RayJob.parse) -> None:
        """`read` makes a job of what is stored, anew after each write."""
        self.context = context
        self._read = read
        self.raw = raw
        self.job = job
        self.problems: list[FieldProblem] = []
        """What is wrong with the spec as it is now."""
        self.hindered = False
        """Whether something was passed over that has to be tried again, whatever else there is to wait for."""

    def problems_with(self, *fields: str) -> list[FieldProblem]:
        """What is wrong with these fields of the spec, or inside them."""
        return [problem for problem in self.problems if spec_field(problem.path) in fields]

    @property
    def status(self) -> RayJobStatus:
        """What is stored; empty for a new job."""
        return self.job.status or RayJobStatus()

    @property
    def state(self) -> str:
        """The deployment status as stored; "" for a new job."""
        return self.status.job_deployment_status or JobDeploymentStatus.NEW

    @property
    def ray_status(self) -> JobStatus:
        """Ray's word as stored; NEW also stands for a word that we do not know."""
        try:
            return JobStatus(self.status.job_status or "")
        except ValueError:
            return JobStatus.NEW

    @property
    def now(self) -> float:
        """Unix seconds."""
        return self.context.clock.now()

    @property
    def started(self) -> float:
        """When the job began, its first attempt if there were several (Unix seconds)."""
        return seconds_of(self.status.start_time) or self.now

    @property
    def attempt_started(self) -> float:
        """When this attempt began: the job itself, or the end of the attempt before, to its last pod."""
        return max(self.started, seconds_of(self.status.end_time) or 0.0)

    @property
    def attempt(self) -> str:
        """Tells this attempt, at this generation of the spec, from all others."""
        return f"{self.job.metadata.generation} {self.status.start_time or ''} {self.status.failed or 0}"

    async def write(self, **changes: Any) -> None:
        """Store these fields of the status (snake_case; None removes one); nothing is sent when they are so already.

        Of a `message` that is too long to be stored an excerpt is.
        """
        wanted = self.status.model_copy(update=_storable(changes)).dump()
        self._take(await write_status(self.context, RAYJOBS, self.raw, wanted))

    async def write_once_settled(self, **changes: Any) -> float | None:
        """As `write`, but what only tells of the way is not written before it has stood for a moment.

        In how many seconds to look again, if it was not written.
        """
        changes = _storable(changes)
        differing = {field for field, value in changes.items() if getattr(self.status, field) != value}
        if differing and differing <= _ON_THE_WAY:
            rest = self.context.job_settling.rest(self.key, {field: changes[field] for field in differing})
            if rest > 0:
                return rest
        await self.write(**changes)
        self.context.job_settling.over(self.key)
        return None

    async def confirm(self) -> None:
        """Raise Conflict if the object has changed since it was read: for decisions that lead to no write of it."""
        await self.patch_metadata({})

    async def patch_metadata(self, change: dict[str, Any]) -> None:
        """Merge into the metadata, if the object has not changed since it was read (else Conflict)."""
        self._take(await self.context.primaries[RAYJOBS].patch(self.raw, {"metadata": change}))

    def _take(self, raw: Raw) -> None:
        if raw is not self.raw:
            self.raw, self.job = raw, self._read(raw)
            self.figures()

    @property
    def key(self) -> str:
        """The job as "namespace/name"."""
        return f"{self.job.metadata.namespace}/{self.job.metadata.name}"

    def figures(self) -> JobFigures:
        """What is counted of the job, with its state as it is now."""
        meta = self.job.metadata
        return self.context.known_jobs.seen(str(meta.namespace), meta.name, str(meta.uid), self.state)

    def count_attempt(self, ended: str, retries: int, began: float) -> None:
        """Note how long the attempt took that has ended now; `began` is Unix seconds."""
        self.figures().ended(ended, retries, max(0.0, self.now - began))

    def say(
        self,
        kind: EventType,
        reason: str,
        message: str,
        action: str,
        *,
        change: str | None = None,
        subject: str = "",
    ) -> None:
        """Record an event about the job; without a `change` a fact is told once for each attempt and generation."""
        if change is None:
            change = self.attempt
        self.context.say(self.job, kind, reason, message, action, change=change, subject=subject)

    @contextmanager
    def telling(self, reason: str, what: str, action: str) -> Iterator[None]:
        """Record an event `reason` for a refusal of what is done inside ("Failed to `what`"), and go on with it.

        A conflict is none: somebody else was faster, and the next look decides anew.
        """
        try:
            yield
        except Conflict:
            raise
        except ApiError as refusal:
            self.say("Warning", reason, f"Failed to {what}: {refusal}", action, subject=what)
            raise

    def say_refused(self, refusal: ApiError, subject: str = "") -> str:
        """Tell that the API server will not take an object that the job needs; return the words."""
        message = f"The API server refuses what the RayJob needs: {refusal.message}"
        self.say("Warning", "FailedToReconcile", message, "Reconcile", subject=subject)
        return message

    def say_failing(self, error: ApiError, subject: str = "") -> str:
        """Tell that the API server goes on failing with what the job needs; return the words."""
        needs = f"needs for its {subject}" if subject else "needs"
        message = f"The API server fails to do what the RayJob {needs}: {error}"
        self.say("Warning", "FailedToReconcile", message, "Reconcile", subject=subject)
        return message

    def stamp(self) -> str:
        """Now, as the status has times."""
        return timestamp(self.now)


def _storable(changes: Mapping[str, Any]) -> dict[str, Any]:
    """These changes with a message that is not too long to be stored: only so can it be compared with what is."""
    message = changes.get("message")
    return {**changes, "message": excerpt(message)} if message else dict(changes)


def spec_field(path: str) -> str:
    """The field of the spec that a path leads into; "" for none."""
    part, _, rest = path.partition(".")
    return re.split(r"[.[]", rest, maxsplit=1)[0] if part == "spec" else ""
