"""Makes the pods of a cluster what its spec asks for: carries out the plans for the head and each worker group.

A group that fails does not hold up the others, but no worker is created while the head can't be. Pods are created in
batches that double while all goes well, so that a template that the API server refuses costs one request, not hundreds.
Each pod is made when its batch is posted.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from typing import Any

from muster.api.raycluster import RayCluster, WorkerGroupSpec
from muster.controllers.children import NotOurs, controlled_by
from muster.controllers.context import Context
from muster.controllers.raycluster.lost import plan_lost
from muster.controllers.raycluster.memory import ClusterMemory
from muster.controllers.raycluster.plan import (
    Creation,
    Deletion,
    GroupPlan,
    plan_head,
    plan_removed_groups,
    plan_workers,
)
from muster.controllers.raycluster.pod_news import pods_in_words
from muster.kube.errors import AlreadyExists, ApiError, Conflict
from muster.kube.objects import Pod
from muster.kube.resource import PODS
from muster.quantities import QuantityError
from muster.ray import labels, names
from muster.ray.cluster_conditions import PROVISIONED, ReplicaFailure
from muster.ray.gang_membership import GangMembership
from muster.ray.pod_health import condition, is_head, is_terminating, is_worker
from muster.ray.pods import WorkerPlace, head_pod, worker_pod
from muster.ray.ray_node import RayNode
from muster.ray.template_hash import template_hash
from muster.ray.upgrade import generation_annotations, generation_hash

Manifest = dict[str, Any]
HEAD_GROUP = labels.HEAD_GROUP

CHANGED_SECONDS = 1.0
"""When to look again at a pod that had changed before it could be deleted."""
_LARGEST_BATCH = 128
"""Pods made and posted together. Making one takes a quarter of a millisecond in which nothing else happens."""


@dataclass(slots=True)
class PodsOutcome:
    """What came of a pass: what could not be done, and when to look again (Unix seconds) if nothing happens before."""

    failure: ReplicaFailure | None = None
    error: Exception | None = None
    look_again: list[float] = field(default_factory=list)
    news: list[Callable[[], None]] = field(default_factory=list)
    """Events that were kept back; each tells itself."""
    _reasons: set[str] = field(default_factory=set)

    def failed(self, reason: str, error: Exception) -> bool:
        """Keep the first failure, the one that users should see; whether it is the first for this reason."""
        if self.failure is None:
            self.failure = ReplicaFailure(reason, str(error))
            self.error = error
        known = reason in self._reasons
        self._reasons.add(reason)
        return not known


class ClusterPods:
    """One pass over the pods of one cluster. With `hold_news` its events are left to the caller to tell, or not.

    Without `creates` pods that have to go go, and none is made.
    """

    def __init__(
        self,
        context: Context,
        cluster: RayCluster,
        memory: ClusterMemory,
        gang: GangMembership | None,
        *,
        hold_news: bool = False,
        creates: bool = True,
    ) -> None:
        self._creates = creates
        self._hold_news = hold_news
        self._context = context
        self._cluster = cluster
        self._memory = memory
        self._gang = gang
        self._named: set[str] = set()
        self._generation: str | None = None
        self._outcome = PodsOutcome()

    async def bring_about(self) -> PodsOutcome:
        """Delete what has to go, create what is missing."""
        await self._take_away_lost()
        pods = self._context.pods_of(self._cluster)
        self._memory.names.seen(pod.metadata.name for pod in pods)
        self._memory.names.seen(pod.metadata.labels.get(labels.REPLICA_NAME, "") for pod in pods)
        await self._head([pod for pod in pods if is_head(pod)])
        workers = [pod for pod in pods if is_worker(pod)]
        groups = self._cluster.spec.worker_groups
        self._named = {name for group in groups for name in group.workers_to_delete}
        known = [names.label_value(group.group_name) for group in groups]
        await self._delete(plan_removed_groups(known, workers))
        present: dict[str | None, list[Pod]] = defaultdict(list)
        for pod in workers:
            present[pod.metadata.labels.get(labels.GROUP)].append(pod)
        for group, label in zip(groups, known, strict=True):
            await self._workers(group, present[label])
        return self._outcome

    async def take_away_lost(self) -> PodsOutcome:
        """Delete the pods on dead nodes, and nothing else."""
        await self._take_away_lost()
        return self._outcome

    async def _take_away_lost(self) -> None:
        plan = plan_lost(self._context.pods_of(self._cluster), self._context.dead_nodes, self._context.clock.now())
        if plan.look_again is not None:
            self._outcome.look_again.append(plan.look_again)
        await self._delete(plan.delete)

    async def _head(self, pods: Sequence[Pod]) -> None:
        plan = plan_head(
            pods,
            self._context.clock.now(),
            replace_at=self._memory.pacing.replace_at(HEAD_GROUP),
            may_create=not self._head_is_gone_for_good(),
            template=template_hash(RayNode.head(self._cluster, self._context.options.pods.cluster_domain)),
        )
        await self._carry_out(plan, HEAD_GROUP)
        await self._create_all(plan.create, self._head_pod, "Head")

    def _head_is_gone_for_good(self) -> bool:
        """Whether the head was up once and, at its owner's wish, must not come again."""
        status = self._cluster.status
        provisioned = condition((status.conditions if status else None) or [], PROVISIONED)
        asked = self._cluster.metadata.annotations.get(labels.DISABLE_PROVISIONED_HEAD_RESTART) == "true"
        return asked and provisioned is not None and provisioned.status == "True"

    async def _workers(self, group: WorkerGroupSpec, pods: Sequence[Pod]) -> None:
        plan = plan_workers(
            group,
            pods,
            self._context.clock.now(),
            autoscaling=self._cluster.spec.autoscaling and not self._context.options.random_pod_delete,
            named=self._named,
            replace_at=self._memory.pacing.replace_at(group.group_name),
            template=template_hash(RayNode.worker(self._cluster, group, self._context.options.pods.cluster_domain)),
        )
        await self._carry_out(plan, group.group_name)
        if self._outcome.failure is None:
            await self._create_all(plan.create, partial(self._worker_pod, group), "Worker")

    async def _carry_out(self, plan: GroupPlan, group: str) -> None:
        broken = [deletion.pod for deletion in plan.delete if deletion.broken]
        if broken:
            self._memory.pacing.replaced(group)
        for pod in broken:
            self._context.crashed_pods.note(self._cluster.metadata.uid or "", pod)
        if plan.look_again is not None:
            self._outcome.look_again.append(plan.look_again)
        await self._delete(plan.delete)

    def _head_pod(self, creation: Creation) -> Manifest:
        cluster = self._cluster.metadata.name
        name = names.fixed_head_pod(cluster)
        if not self._context.options.pods.fixed_head_name:
            name = self._memory.names.name(names.head_pod_prefix(cluster), HEAD_GROUP, creation.replica)
        manifest = head_pod(self._cluster, name, self._gang, self._context.options.pods)
        return self._of_this_generation(manifest, is_head=True)

    def _worker_pod(self, group: WorkerGroupSpec, creation: Creation) -> Manifest:
        intended, cluster = self._memory.names, self._cluster
        place = WorkerPlace(creation.replica)
        if group.hosts > 1:
            replica_name = creation.replica_name or intended.name(
                names.replica_prefix(group.group_name), group.group_name, creation.replica
            )
            place = WorkerPlace(creation.replica, replica_name, creation.host)
        prefix = names.worker_pod_prefix(cluster.metadata.name, group.group_name)
        name = intended.name(prefix, group.group_name, creation.replica, creation.host)
        manifest = worker_pod(cluster, group, name, self._gang, place=place, options=self._context.options.pods)
        return self._of_this_generation(manifest, is_head=False)

    def _of_this_generation(self, manifest: Manifest, *, is_head: bool) -> Manifest:
        if self._generation is None:  # not before a pod is made: most passes make none
            self._generation = generation_hash(self._cluster)
        manifest["metadata"]["annotations"].update(generation_annotations(self._generation, is_head=is_head))
        return manifest

    async def _delete(self, deletions: Iterable[Deletion]) -> None:
        planned = list(deletions)
        deleted = await asyncio.gather(*(self._delete_one(deletion) for deletion in planned))
        together: dict[tuple[str, str], list[str]] = defaultdict(list)
        for deletion in compress(planned, deleted):
            together[_role(deletion.pod), deletion.why].append(deletion.pod.key)
        for (role, why), keys in together.items():
            self._say(
                "Normal", f"Deleted{role}Pod", pods_in_words("Deleted", keys, why, role=role), "Delete", subject=why
            )

    async def _delete_one(self, deletion: Deletion) -> bool:
        """Whether it is this pass that has deleted the pod."""
        pod = deletion.pod
        role = _role(pod)
        try:
            return await self._context.pods.delete(
                pod, unchanged=deletion.unchanged, grace_seconds=0 if deletion.force else None
            )
        except ApiError as error:
            if deletion.unchanged and isinstance(error, Conflict):
                # Of not every change is the cluster told.
                self._outcome.look_again.append(self._context.clock.now() + CHANGED_SECONDS)
                return False
            if self._outcome.failed(f"FailedDelete{role}Pod", error):
                self._say("Warning", f"FailedToDelete{role}Pod", f"Failed deleting pod {pod.key}: {error}", "Delete")
            return False

    async def _create_all(
        self, creations: Sequence[Creation], pod_of: Callable[[Creation], Manifest], role: str
    ) -> None:
        done, batch = 0, 1
        created: list[str] = []
        while self._creates and done < len(creations) and self._outcome.failure is None:
            manifests = [pod_of(creation) for creation in creations[done : done + batch]]
            made = await asyncio.gather(*(self._create(manifest, role) for manifest in manifests))
            created += [_key(manifest) for manifest in compress(manifests, made)]
            done, batch = done + len(manifests), min(batch * 2, _LARGEST_BATCH)
        if created:
            self._say("Normal", f"Created{role}Pod", pods_in_words("Created", created, role=role), "Create")

    async def _create(self, manifest: Manifest, role: str) -> bool:
        """Whether the pod is there now, and ours."""
        try:
            await self._create_or_find(manifest)
        except (ApiError, QuantityError) as error:
            if self._outcome.failed(f"FailedCreate{role}Pod", error):
                message = f"Failed to create {role.lower()} Pod {_key(manifest)}: {error}"
                self._say("Warning", f"FailedToCreate{role}Pod", message, "Create")
            return False
        self._tell_why_ungated(manifest, role)
        return True

    async def _create_or_find(self, manifest: Manifest) -> None:
        name = manifest["metadata"]["name"]
        try:
            await self._context.pods.create(manifest)
        except AlreadyExists as refusal:
            found = await self._context.pods.read(manifest["metadata"]["namespace"], name)
            ours = found is not None and controlled_by(found.metadata, self._cluster.metadata.uid)
            if found is None or not ours or is_terminating(found):
                self._memory.names.discard(name)
                if found is None or ours:
                    raise
                raise AlreadyExists(
                    refusal.status, refusal.reason, str(NotOurs(PODS, found.metadata, self._cluster))
                ) from refusal
        self._memory.names.discard(name)

    def _tell_why_ungated(self, manifest: Manifest, role: str) -> None:
        template = {key: value for key, value in manifest["spec"].items() if key != "schedulingGates"}
        why = self._gang.why_ungated(template) if self._gang is not None else None
        if why is not None and self._gang is not None and self._gang.gate is not None:
            message = f"{role} pods are not held back until the whole gang has a place: {why}"
            group = manifest["metadata"]["labels"][labels.GROUP]
            self._say("Warning", "NotGangScheduled", message, f"Create{role}", subject=group)

    def _say(self, kind: Any, reason: str, message: str, action: str, subject: str = "") -> None:
        tell = partial(self._context.say, self._cluster, kind, reason, message, action, subject=subject)
        if self._hold_news:
            self._outcome.news.append(tell)
        else:
            tell()


def _role(pod: Pod) -> str:
    return "Head" if is_head(pod) else "Worker"


def _key(manifest: Manifest) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
