"""Pods within a ResourceQuota: all that a gang needs, or none.

A quota counts pods that wait, too. Two gangs of which each got a part of its pods into the last room would wait for
each other for ever. So a gang that has never run, and of whose least members the quota refuses one, gives back those
that it got, and tries again when it is its turn (`quota_turns`). What a gang that runs is refused, it goes without.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable

from muster.api.raycluster import RayCluster
from muster.controllers.context import Context
from muster.controllers.raycluster.memory import ClusterMemory
from muster.controllers.raycluster.pods import CHANGED_SECONDS, ClusterPods, PodsOutcome
from muster.controllers.raycluster.quota_turns import QuotaTurns, Turn
from muster.kube.errors import ApiError, Conflict, Forbidden
from muster.kube.objects import Pod
from muster.ray import labels, names
from muster.ray.cluster_conditions import ReplicaFailure
from muster.ray.gang import gang_of
from muster.ray.gang_membership import GangMembership
from muster.ray.pod_health import is_terminating

_EXCEEDED = re.compile("(forbidden: )?exceeded quota")


async def pods_within_quota(
    context: Context, cluster: RayCluster, memory: ClusterMemory, gang: GangMembership | None, turns: QuotaTurns
) -> PodsOutcome:
    """One pass over the cluster's pods (see `ClusterPods`); none is made before the gang's turn has come.

    Where there are no gangs each pod is for itself.
    """
    if gang is None:
        return await ClusterPods(context, cluster, memory, gang).bring_about()
    turn = turns.of(cluster)
    if turn is not None and turn.until > context.clock.now() and not _has_run(context.pods_of(cluster)):
        return await _give_back(context, cluster, turn)
    wanted = cluster if turn is None else _with_least_members(cluster)
    # What happens in a try that comes to nothing was told of the first one: pods have other names at each.
    outcome = await ClusterPods(context, wanted, memory, gang, hold_news=turn is not None).bring_about()
    refusal = _quota_in(outcome)
    if outcome.failure is None or refusal is None or not _is_short(context, cluster):
        turns.forget(f"{cluster.metadata.namespace}/{cluster.metadata.name}")
        if wanted is not cluster:
            outcome.look_again.append(context.clock.now())  # for those beyond the least
        for tell in outcome.news:
            tell()
        return outcome
    return await _give_back(context, cluster, turns.refused(cluster, ReplicaFailure(outcome.failure.reason, refusal)))


async def _give_back(context: Context, cluster: RayCluster, turn: Turn) -> PodsOutcome:
    """Delete the pods that the gang has. One that has changed meanwhile is looked at again soon."""
    outcome = PodsOutcome(failure=turn.failure, look_again=[turn.until])
    pods = [pod for pod in context.pods_of(cluster) if not is_terminating(pod)]
    message = f"{turn.failure.message}. The gang keeps no pod until there is room for all of it, and tries again"
    context.say(cluster, "Warning", "QuotaExceeded", message, "Create")
    for error in await asyncio.gather(*(_delete(context, pod) for pod in pods)):
        if isinstance(error, Conflict):
            outcome.look_again.append(context.clock.now() + CHANGED_SECONDS)
        else:
            outcome.error = outcome.error or error
    return outcome


async def _delete(context: Context, pod: Pod) -> ApiError | None:
    try:
        await context.pods.delete(pod, unchanged=True)
    except ApiError as error:
        return error
    return None


def _quota_in(outcome: PodsOutcome) -> str | None:
    """The quota's own words, if it was a quota that refused a pod; without the name of the pod, another at each try."""
    error = outcome.error
    if not isinstance(error, Forbidden):
        return None
    found = _EXCEEDED.search(error.message)
    return None if found is None else error.message[found.start() :]


def _has_run(pods: Iterable[Pod]) -> bool:
    return any(pod.spec.node_name or pod.status.phase not in (None, "", "Pending") for pod in pods)


def _is_short(context: Context, cluster: RayCluster) -> bool:
    """Whether the gang has never run, and lacks one of its least members."""
    pods = [pod for pod in context.pods_of(cluster) if not is_terminating(pod)]
    options = context.options
    least = gang_of(cluster.spec, options=options.pods, scheduler_name=options.scheduler_name).members
    there = Counter(pod.metadata.labels.get(labels.GROUP) for pod in pods)
    return not _has_run(pods) and any(there[names.label_value(role)] < count for role, count in least.items())


def _with_least_members(cluster: RayCluster) -> RayCluster:
    """The cluster with no more workers than its gang needs: with the autoscaler others must not take their room."""
    if not cluster.spec.autoscaling:
        return cluster
    groups = [group.model_copy(update={"replicas": group.minimum}) for group in cluster.spec.worker_groups]
    return cluster.model_copy(update={"spec": cluster.spec.model_copy(update={"worker_group_specs": groups})})
