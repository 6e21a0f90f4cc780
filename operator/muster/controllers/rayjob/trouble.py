"""What keeps the job's pods from running, or its submitter's Job from making one, or can't be read: told on the RayJob.

With `muster.dev/fail-fast: "true"` it fails the job.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from muster.api.rayjob import JobStatus
from muster.controllers.context import ObservedRayCluster
from muster.controllers.pod_trouble import trouble_of
from muster.controllers.rayjob import cluster as job_cluster
from muster.controllers.rayjob.ending import fail
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.refused_submitter import refused_submitter
from muster.controllers.rayjob.submitter import find_submitter
from muster.controllers.rayjob.unreadable import unreadable_objects
from muster.kube.objects import Pod
from muster.ray.labels import FAIL_FAST

_ORDER = ("Object", "Head", "Submitter", "Worker")


class Trouble(Protocol):
    """What is amiss: a word, a sentence, and the part of the sentence that stays the same while the cause does."""

    @property
    def role(self) -> str:
        """Whose it is: Head, Submitter, Worker, or Object for what is no pod's."""

    @property
    def pod(self) -> str:
        """The object that has it."""

    @property
    def reason(self) -> str:
        """In a word."""

    @property
    def stem(self) -> str:
        """How the sentence begins."""

    @property
    def sentence(self) -> str:
        """What to tell the user."""

    @property
    def hopeless_from(self) -> float:
        """The Unix second from which it counts as what does not heal; infinite for what may."""


async def troubles_of(look: Look, cluster: ObservedRayCluster | None) -> Troubles:
    """The troubles of the pods that the job has now, those of its own cluster, and of its submitter's Job; and what
    can't be read.
    """
    pods = _pods(look, cluster)
    found: list[Trouble | None] = [trouble_of(pod) for pod in pods]
    if cluster is not None:
        found += look.context.crashed_pods.troubles(cluster.metadata.uid, pods)
    found.append(await refused_submitter(look))
    found += unreadable_objects(look)
    return Troubles(look, [trouble for trouble in found if trouble is not None])


class Troubles:
    """What is done about them: told, and perhaps the job failed."""

    def __init__(self, look: Look, troubles: Iterable[Trouble]) -> None:
        self._look = look
        self._known = sorted(troubles, key=lambda one: (_ORDER.index(one.role), one.hopeless_from == math.inf, one.pod))

    async def fail_fast(self) -> bool:
        """Fail the job if that is wanted and one of its pods can't be helped; whether it was failed. No retry helps."""
        hopeless = [one for one in self._known if one.hopeless_from <= self._look.now]
        if not hopeless or not self._fails_fast or self._look.ray_status.terminal:
            return False
        await fail(self._look, hopeless[0].reason, self._sentence(hopeless[0]), final=True)
        return True

    def over(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """These changes of the status with the first trouble told in place of their message; none once Ray has ended.

        An event tells it where the status has another reason so far. Without trouble what was told of an earlier one is
        taken back.
        """
        if self._look.ray_status.terminal or _ends(changes):
            return dict(changes)
        if self._known:
            first = self._known[0]
            if first.reason != self._look.status.reason:
                self._look.say("Warning", first.reason, first.sentence, "Start")
            return {**changes, "reason": first.reason, "message": self._sentence(first)}
        healed = {"reason": None, "message": None} if self._look.status.reason else {}
        return {**healed, **changes}

    def next_look(self) -> float | None:
        """In how many seconds the job may have to be failed, if nothing changes until then."""
        times = [one.hopeless_from - self._look.now for one in self._known if one.hopeless_from < math.inf]
        return max(0.0, min(times)) if times and self._fails_fast else None

    @property
    def _fails_fast(self) -> bool:
        return self._look.job.metadata.annotations.get(FAIL_FAST) == "true"

    def _sentence(self, trouble: Trouble) -> str:
        """The sentence that is stored already, if it says the same: kubelets word each try in their own way."""
        stored = self._look.status.message or ""
        return stored if stored.startswith(trouble.stem) else trouble.sentence


def _ends(changes: Mapping[str, Any]) -> bool:
    return JobStatus(changes.get("job_status") or "").terminal


def _pods(look: Look, cluster: ObservedRayCluster | None) -> list[Pod]:
    pods, namespace = look.context.pods, look.job.metadata.namespace
    submitter = find_submitter(look)
    found = pods.owned_by(namespace, submitter.metadata.uid) if submitter is not None else []
    if cluster is not None and job_cluster.is_the_jobs(look, cluster):
        found = [*found, *pods.owned_by(namespace, cluster.metadata.uid)]
    return found
