"""One look at a RayCluster.

It refuses a spec that can't work (saying which field), suspends or brings about what the spec
asks for, and writes the status. It never asks to be called again just to poll: changes of pods and services come as
events, and time matters only where a plan says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.controllers.per_version import PerVersion, stored_version
from muster.controllers.primaries import Raw
from muster.controllers.primary import (
    being_deleted,
    in_words,
    invalid_reason,
    managed_elsewhere,
    say_invalid,
    understand,
)
from muster.controllers.raycluster.gang import cluster_membership
from muster.controllers.raycluster.hindrance import Hindrance, api_server_fails, find_hindrance
from muster.controllers.raycluster.ingress import ensure_ingress
from muster.controllers.raycluster.memory import ClusterMemory
from muster.controllers.raycluster.place import keeps_place_until, not_stuck
from muster.controllers.raycluster.pods import ClusterPods, PodsOutcome
from muster.controllers.raycluster.quota import pods_within_quota
from muster.controllers.raycluster.quota_turns import QuotaTurns
from muster.controllers.raycluster.redis_cleanup import hold_finalizer, let_go
from muster.controllers.raycluster.status import (
    report,
    report_malformed,
    report_once_settled,
    report_refusal,
    wanting_nothing,
)
from muster.controllers.raycluster.suspend import give_everything_back, suspending_is_recorded
from muster.controllers.raycluster.upgrade import Upgrade, upgrade
from muster.controllers.runner import Requeue
from muster.controllers.setbacks import Setbacks
from muster.kube.errors import ApiError, Conflict
from muster.kube.objects import Pod
from muster.kube.resource import RAYCLUSTERS
from muster.ray.cluster_conditions import ReplicaFailure, Suspension, suspension
from muster.ray.pod_health import is_terminating
from muster.ray.validation import validate_ray_cluster
from muster.ray.validation.made import made_of_ray_cluster


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
        self._setbacks = Setbacks(context.clock)

    async def reconcile(self, key: str) -> Requeue | None:
        """Look at the cluster "namespace/name"."""
        self._context.cluster_interests.clear(key)
        raw = await self._context.primaries[RAYCLUSTERS].read(key)
        if raw is None:
            self._memories.pop(key, None)
            self._judged.forget(key)
            self._quota_turns.forget(key)
            self._setbacks.over(key)
            self._context.cluster_settling.over(key)
            return None
        # Pods and services of a cluster that is being deleted are the garbage collector's; its Redis is ours, also when
        # the cluster has been given to another controller since: nobody else drops the finalizer.
        if being_deleted(raw):
            self._quota_turns.forget(key)
            return await let_go(self._context, raw)
        if managed_elsewhere(raw):
            return None
        judged = self._judged.of(key, stored_version(raw), partial(self._judge, raw))
        if judged is None:
            await report_malformed(self._context, raw)
            return None
        return await self._reconcile(key, raw, judged)

    def _judge(self, raw: Raw) -> _Judged | None:
        cluster = understand(self._context, RayCluster, raw)
        return None if cluster is None else _Judged(cluster, validate_ray_cluster(cluster))

    async def _reconcile(self, key: str, raw: Raw, judged: _Judged) -> Requeue | None:
        cluster, problems = judged.cluster, judged.problems
        self._context.say_unreadable(cluster)
        where = suspension(cluster, self._present(cluster))
        # Whatever is wrong with the spec, its owner may have the nodes back.
        if not problems and where is not Suspension.SUSPENDING:
            try:
                problems = await self._refused_templates(judged)
            except ApiError as error:
                return await self._without_new_pods(key, raw, cluster, self._lasting(key, error))
        if problems:
            say_invalid(self._context, cluster, problems)
        if where is not Suspension.NONE:
            self._quota_turns.forget(key)
            stored = await self._suspend(key, raw, cluster, where, problems)
            return Requeue(0) if stored else self._when_one_is_stuck(cluster)
        if problems:
            await report_refusal(self._context, raw, problems)
            return None
        return await self._bring_about(key, raw, cluster)

    async def _refused_templates(self, judged: _Judged) -> list[FieldProblem]:
        if judged.templates_taken:
            return []
        cluster = judged.cluster
        made = made_of_ray_cluster(cluster, self._context.options.pods)
        refused = await self._context.templates.problems(cluster.metadata.namespace, made)
        judged.templates_taken = not refused
        return refused

    async def _suspend(
        self, key: str, raw: Raw, cluster: RayCluster, where: Suspension, problems: Sequence[FieldProblem]
    ) -> bool:
        """Take a step of the suspension; whether it was stored, so that the next step can follow."""
        failure = None
        if where is Suspension.SUSPENDED or suspending_is_recorded(cluster):
            try:
                failure = await give_everything_back(self._context, cluster)
            except ApiError as error:
                failure = self._lasting(key, error).replica_failure, error
            else:
                self._setbacks.over(key)
        refused = ReplicaFailure(invalid_reason("RayCluster", problems[0]), in_words(problems)) if problems else None
        shown = wanting_nothing(cluster) if problems else cluster
        stored = await report(self._context, raw, shown, failure[0] if failure else refused)
        # Pods that go are changes that bring the cluster back.
        if failure is not None:
            raise failure[1]
        return stored

    def _when_one_is_stuck(self, cluster: RayCluster) -> Requeue | None:
        """When the first of the pods that go counts as gone; a suspension must not wait for ever for a dead node."""
        now = self._context.clock.now()
        going = [pod for pod in self._context.pods_of(cluster) if is_terminating(pod)]
        ends = [end for end in map(keeps_place_until, going) if end > now]
        return Requeue(min(ends) - now) if ends else None

    async def _bring_about(self, key: str, raw: Raw, cluster: RayCluster) -> Requeue | None:
        hindrance = await self._find_hindrance(key, cluster)
        if hindrance is not None:
            return await self._without_new_pods(key, raw, cluster, hindrance)
        # Not before pods are made: the deletion of a cluster that never had any waits for nothing.
        raw = await hold_finalizer(self._context, raw, cluster)
        under_way = await upgrade(self._context, cluster, self._present(cluster))
        if under_way is not None:
            return await self._wait_for_upgrade(raw, cluster, under_way)
        gang = cluster_membership(self._context, cluster)
        memory = self._memory(key, cluster)
        outcome = await pods_within_quota(self._context, cluster, memory, gang, self._quota_turns)
        settled = await report_once_settled(self._context, raw, cluster, outcome.failure)
        if settled is not None:
            outcome.look_again.append(self._context.clock.now() + settled)
        without_ingress = await ensure_ingress(self._context, cluster)
        if without_ingress is not None:
            outcome.look_again.append(self._context.clock.now() + without_ingress)
        return self._after(outcome)

    async def _find_hindrance(self, key: str, cluster: RayCluster) -> Hindrance | None:
        try:
            hindrance = await find_hindrance(self._context, cluster, self._present(cluster))
        except ApiError as error:
            return self._lasting(key, error)
        self._setbacks.over(key)
        return hindrance

    def _lasting(self, key: str, error: ApiError) -> Hindrance:
        """What is told of the failure. Raises it where it may have passed at the next look: then it is not told."""
        if isinstance(error, Conflict) or not self._setbacks.last(key):
            raise error
        return api_server_fails(error)

    async def _without_new_pods(self, key: str, raw: Raw, cluster: RayCluster, hindrance: Hindrance) -> Requeue | None:
        self._context.say(
            cluster, "Warning", hindrance.reason, hindrance.message, hindrance.action, subject=hindrance.subject
        )
        gang = cluster_membership(self._context, cluster)
        pods = ClusterPods(self._context, cluster, self._memory(key, cluster), gang, creates=False)
        outcome = await (pods.bring_about() if hindrance.gang_is_sized else pods.take_away_lost())
        await report(self._context, raw, cluster, hindrance.replica_failure)
        outcome.error = hindrance.error or outcome.error
        now = self._context.clock.now()
        outcome.look_again = [moment for moment in outcome.look_again if moment > now]
        if hindrance.look_again is not None:
            outcome.look_again.append(now + hindrance.look_again)
        return self._after(outcome)

    def _after(self, outcome: PodsOutcome) -> Requeue | None:
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

    def _present(self, cluster: RayCluster) -> list[Pod]:
        """The cluster's pods without those that a dead node keeps from going."""
        return not_stuck(self._context.pods_of(cluster), self._context.clock.now())

    def _memory(self, key: str, cluster: RayCluster) -> ClusterMemory:
        memory = self._memories.get(key)
        if memory is None or memory.uid != cluster.metadata.uid:
            memory = ClusterMemory(cluster.metadata.uid, self._context.clock, self._context.random)
            self._memories[key] = memory
        return memory
