"""One look at a RayCluster.

It refuses a spec that can't work (saying which field), suspends or brings about what the spec
asks for, and writes the status. It never asks to be called again just to poll: changes of pods and services come as
events, and time matters only where a plan says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster
from muster.controllers.children import NotOurs
from muster.controllers.context import Context
from muster.controllers.gang import QUEUE_CLOSED, closed_queue, membership
from muster.controllers.per_version import PerVersion
from muster.controllers.primaries import Raw
from muster.controllers.primary import (
    being_deleted,
    managed_elsewhere,
    say_invalid,
    understand,
)
from muster.controllers.raycluster.authentication import ensure_token
from muster.controllers.raycluster.autoscaler_access import AccountMissing, ensure_autoscaler_access
from muster.controllers.raycluster.gang import ensure_gang, has_own_pod_group
from muster.controllers.raycluster.ingress import ensure_ingress
from muster.controllers.raycluster.memory import ClusterMemory
from muster.controllers.raycluster.place import keeps_place_until, not_stuck
from muster.controllers.raycluster.quota import pods_within_quota
from muster.controllers.raycluster.quota_turns import QuotaTurns
from muster.controllers.raycluster.redis_cleanup import hold_finalizer, let_go
from muster.controllers.raycluster.services import ensure_services
from muster.controllers.raycluster.status import report, report_refusal
from muster.controllers.raycluster.suspend import give_everything_back, suspending_is_recorded
from muster.controllers.raycluster.upgrade import Upgrade, upgrade
from muster.controllers.runner import Requeue
from muster.kube.errors import Forbidden, Invalid
from muster.kube.objects import Pod
from muster.kube.resource import QUEUES, RAYCLUSTERS
from muster.ray.cluster_conditions import ReplicaFailure, Suspension, suspension
from muster.ray.gang import queue_name
from muster.ray.pod_health import is_terminating
from muster.ray.validation import validate_ray_cluster
from muster.ray.validation.templates import ray_cluster_templates

_NOT_OURS_SECONDS = 10.0
"""How often to see whether a name that somebody else has got is free, or a Secret that was missing is there."""


@dataclass(slots=True)
class _Judged:
    """A version of a cluster: what is wrong with it by our own rules, and whether the API server takes its templates.

    A refusal by the API server may be another one a minute later; so it is not kept.
    """

    cluster: RayCluster
    problems: list[FieldProblem]
    templates_taken: bool = False


class RayClusterReconciler:
    """Brings RayClusters from what is to what should be."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._memories: dict[str, ClusterMemory] = {}
        self._quota_turns = QuotaTurns(context.clock, context.random)
        self._judged: PerVersion[_Judged] = PerVersion()

    async def reconcile(self, key: str) -> Requeue | None:
        """Look at the cluster "namespace/name"."""
        self._context.cluster_interests.clear(key)
        raw = await self._context.primaries[RAYCLUSTERS].read(key)
        if raw is None:
            self._memories.pop(key, None)
            self._judged.forget(key)
            self._quota_turns.forget(key)
            return None
        # Pods and services of a cluster that is being deleted are the garbage collector's; its Redis is ours, also when
        # the cluster has been given to another controller since: nobody else drops the finalizer.
        if being_deleted(raw):
            self._quota_turns.forget(key)
            return await let_go(self._context, raw)
        if managed_elsewhere(raw):
            return None
        judged = self._judged.of(key, raw, partial(self._judge, raw))
        return None if judged is None else await self._reconcile(key, raw, judged)

    def _judge(self, raw: Raw) -> _Judged | None:
        cluster = understand(self._context, RayCluster, raw)
        return None if cluster is None else _Judged(cluster, validate_ray_cluster(cluster))

    async def _reconcile(self, key: str, raw: Raw, judged: _Judged) -> Requeue | None:
        cluster = judged.cluster
        problems = judged.problems or await self._refused_templates(judged)
        if problems:
            say_invalid(self._context, cluster, problems)
            await report_refusal(self._context, raw, problems)
            return None
        where = suspension(cluster, self._present(cluster))
        if where is not Suspension.NONE:
            self._quota_turns.forget(key)
            await self._suspend(raw, cluster, where)
            return self._when_one_is_stuck(cluster)
        return await self._bring_about(key, raw, cluster)

    async def _refused_templates(self, judged: _Judged) -> list[FieldProblem]:
        if judged.templates_taken:
            return []
        cluster = judged.cluster
        refused = await self._context.templates.problems(cluster.metadata.namespace, ray_cluster_templates(cluster))
        judged.templates_taken = not refused
        return refused

    async def _suspend(self, raw: Raw, cluster: RayCluster, where: Suspension) -> None:
        failure = None
        if where is Suspension.SUSPENDED or suspending_is_recorded(cluster):
            failure = await give_everything_back(self._context, cluster)
        await report(self._context, raw, cluster, failure[0] if failure else None)
        # Pods that go, and the status written here, are changes that bring the cluster back.
        if failure is not None:
            raise failure[1]

    def _when_one_is_stuck(self, cluster: RayCluster) -> Requeue | None:
        """When the first of the pods that go counts as gone; a suspension must not wait for ever for a dead node."""
        now = self._context.clock.now()
        going = [pod for pod in self._context.pods_of(cluster) if is_terminating(pod)]
        ends = [end for end in map(keeps_place_until, going) if end > now]
        return Requeue(min(ends) - now) if ends else None

    async def _bring_about(self, key: str, raw: Raw, cluster: RayCluster) -> Requeue | None:
        raw = await hold_finalizer(self._context, raw, cluster)
        try:
            await ensure_gang(self._context, cluster)
            complaint = self._closed_queue(key, cluster)
            if complaint is not None:
                self._context.say(cluster, "Warning", QUEUE_CLOSED, complaint, "Validate")
                await report(self._context, raw, cluster, ReplicaFailure(QUEUE_CLOSED, complaint))
                return None
            without_token = await ensure_token(self._context, cluster, self._present(cluster))
            if without_token is not None:
                return await self._wait_for_token(raw, cluster, without_token)
            await ensure_services(self._context, cluster)
            await ensure_autoscaler_access(self._context, cluster)
        except NotOurs as conflict:
            self._context.say(cluster, "Warning", "NameTaken", str(conflict), "Create", subject=conflict.name)
            await report(self._context, raw, cluster, ReplicaFailure("FailedCreateHeadPod", str(conflict)))
            return Requeue(_NOT_OURS_SECONDS)
        except AccountMissing as missing:
            self._context.say(cluster, "Warning", "AutoscalerServiceAccountNotFound", str(missing), "Create")
            await report(self._context, raw, cluster, ReplicaFailure("FailedCreateHeadPod", str(missing)))
            return Requeue(_NOT_OURS_SECONDS)
        except (Invalid, Forbidden) as refusal:
            message = f"The API server refuses what the RayCluster needs: {refusal.message}"
            self._context.say(cluster, "Warning", "FailedToReconcile", message, "Reconcile")
            await report(self._context, raw, cluster, ReplicaFailure("FailedCreateHeadPod", message))
            raise
        under_way = await upgrade(self._context, cluster, self._present(cluster))
        if under_way is not None:
            return await self._wait_for_upgrade(raw, cluster, under_way)
        gang = membership(self._context, cluster)
        memory = self._memory(key, cluster)
        outcome = await pods_within_quota(self._context, cluster, memory, gang, self._quota_turns)
        await report(self._context, raw, cluster, outcome.failure)
        without_ingress = await ensure_ingress(self._context, cluster)
        if without_ingress is not None:
            outcome.look_again.append(self._context.clock.now() + without_ingress)
        if outcome.error is not None:
            raise outcome.error
        if not outcome.look_again:
            return None
        return Requeue(max(0.0, min(outcome.look_again) - self._context.clock.now()))

    async def _wait_for_upgrade(self, raw: Raw, cluster: RayCluster, under_way: Upgrade) -> Requeue:
        await report(self._context, raw, cluster, under_way.failure)
        if under_way.error is not None:
            raise under_way.error
        return Requeue(max(0.0, under_way.until - self._context.clock.now()))

    async def _wait_for_token(self, raw: Raw, cluster: RayCluster, complaint: str) -> Requeue:
        self._context.say(cluster, "Warning", "AuthTokenMissing", complaint, "Reconcile")
        await report(self._context, raw, cluster, ReplicaFailure("FailedCreateHeadPod", complaint))
        return Requeue(_NOT_OURS_SECONDS)

    def _present(self, cluster: RayCluster) -> list[Pod]:
        """The cluster's pods without those that a dead node keeps from going."""
        return not_stuck(self._context.pods_of(cluster), self._context.clock.now())

    def _closed_queue(self, key: str, cluster: RayCluster) -> str | None:
        """Why no pod of a cluster that stands alone is made yet, its queue being closed; pods that exist stay."""
        if not has_own_pod_group(cluster) or self._context.pods_of(cluster):
            return None
        complaint = closed_queue(self._context, cluster)
        if complaint is not None:
            self._context.cluster_interests.add(key, QUEUES, str(queue_name(cluster)))
        return complaint

    def _memory(self, key: str, cluster: RayCluster) -> ClusterMemory:
        memory = self._memories.get(key)
        if memory is None or memory.uid != cluster.metadata.uid:
            memory = ClusterMemory(cluster.metadata.uid, self._context.clock, self._context.random)
            self._memories[key] = memory
        return memory
