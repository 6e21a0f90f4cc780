"""What has to happen to the pods of a head or worker group. Pure: what is and what should be go in, a plan comes out.

A replica is one pod, or the `numOfHosts` pods that live and die together. Pods that can't serve any more are deleted
and replaced; a pod on its way out keeps its place until it is gone, so that no two generations fight for the same room,
unless its node never confirms; surplus replicas go in an order that hurts least.

A plan is no longer than `CREATIONS_A_PASS`, whatever number the spec has: the operator does nothing else while it
plans, and the first pod may be refused. The rest is planned when those are there.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

from muster.api.raycluster import WorkerGroupSpec
from muster.controllers.raycluster.place import created, keeps_place_until
from muster.kube.objects import Pod
from muster.ray import labels
from muster.ray.pod_health import is_running, is_running_and_ready, is_terminating, why_replace

CREATIONS_A_PASS = 500
"""Pods of a group that are planned at once; more only for hosts of one replica, which are not torn apart."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A pod that has to go, and why (the rest of a sentence).

    `unchanged`: only if it is still as it was seen. `force`: without waiting for its kubelet, which is dead.
    """

    pod: Pod
    why: str
    broken: bool = False
    unchanged: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Creation:
    """A worker that is missing: the index of its replica, its host in it, and the replica's name where it has one."""

    replica: int = 0
    host: int = 0
    replica_name: str | None = None


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What to delete and create now, and the Unix second at which to look again whatever happens (None: no need)."""

    delete: tuple[Deletion, ...] = ()
    create: tuple[Creation, ...] = ()
    look_again: float | None = None


@dataclass(slots=True, eq=False)  # each is itself, so that thousands can be told apart by sets
class _Replica:
    name: str | None
    index: int | None
    pods: list[Pod] = field(default_factory=list)

    @property
    def live(self) -> list[Pod]:
        return [pod for pod in self.pods if not is_terminating(pod)]

    @property
    def keeps_place_until(self) -> float:
        """As for its pods: the last of them counts."""
        return max(keeps_place_until(pod) for pod in self.pods)

    def hurts(self) -> tuple[bool, bool, bool, float, str]:
        """How much its loss would hurt: smallest first. Among equals the newest goes first."""
        return (
            all(is_running_and_ready(pod) for pod in self.pods),
            any(is_running(pod) for pod in self.pods),
            any(pod.spec.node_name for pod in self.pods),
            -max(created(pod) for pod in self.pods),
            min(pod.metadata.name for pod in self.pods),
        )


def plan_head(
    pods: Sequence[Pod],
    now: float,
    *,
    replace_at: float = 0.0,
    may_create: bool = True,
    template: str | None = None,
) -> GroupPlan:
    """One healthy head. `replace_at`: before that second no broken head is replaced (see `ReplacementPacing`).

    `template` is the hash of the template as it is now: a pod that was made from another one and has not begun to run
    is made anew.
    """
    deletions = [*_broken(pods, now, replace_at), *_outdated(pods, template)]
    doomed = {deletion.pod.metadata.uid for deletion in deletions}
    staying = sorted(
        (pod for pod in pods if not is_terminating(pod) and pod.metadata.uid not in doomed),
        key=lambda pod: (not is_running_and_ready(pod), created(pod), pod.metadata.name),
    )
    surplus = [Deletion(pod, "the cluster has another head") for pod in staying[1:]]
    going = [pod for pod in pods if is_terminating(pod) or pod.metadata.uid in doomed]
    ends = [end for end in map(keeps_place_until, going) if end > now]
    waits = [end for end in ends if end < math.inf]
    if any(why_replace(pod) for pod in staying[:1]):
        waits.append(replace_at)
    missing = not staying and not ends and may_create
    return GroupPlan((*deletions, *surplus), (Creation(),) if missing else (), min(waits, default=None))


def plan_workers(
    group: WorkerGroupSpec,
    pods: Sequence[Pod],
    now: float,
    *,
    autoscaling: bool = False,
    named: Collection[str] = (),
    replace_at: float = 0.0,
    template: str | None = None,
) -> GroupPlan:
    """The desired number of healthy replicas; `template` as for `plan_head`.

    `named` are the workers that the autoscaler wants gone, whatever group's `scaleStrategy` they stand in: it writes by
    the position of a group, which may have moved meanwhile, and waits until they are gone.

    With autoscaling Ray names the workers that have to go (`scaleStrategy.workersToDelete`), so that no other surplus
    is cut: the autoscaler knows which are idle.
    """
    if group.suspend:
        return GroupPlan(tuple(Deletion(pod, "its group is suspended") for pod in pods if not is_terminating(pod)))
    replicas = list(_replicas(group, pods))
    deletions = list(_broken_replicas(group, replicas, now, replace_at, named))
    doomed = {deletion.pod.metadata.uid for deletion in deletions}
    outdated = [pod for pod in _outdated_replicas(replicas, template) if pod.pod.metadata.uid not in doomed]
    deletions += outdated
    doomed |= {deletion.pod.metadata.uid for deletion in outdated}
    staying = [one for one in replicas if one.live and not any(pod.metadata.uid in doomed for pod in one.live)]
    if not autoscaling:
        surplus = sorted(staying, key=_Replica.hurts)[: max(0, len(staying) - group.desired_replicas)]
        for replica in surplus:
            deletions += [Deletion(pod, "the group has more workers than it should") for pod in replica.live]
        staying = _without(staying, surplus)
    holding = [one for one in _without(replicas, staying) if one.keeps_place_until > now]
    creations, cut_short = _first(_missing_replicas(group, staying, holding))
    waits = [one.keeps_place_until for one in holding if one.keeps_place_until < math.inf]
    if any(why_replace(pod) for replica in staying for pod in replica.live):
        waits.append(replace_at)
    if cut_short:
        waits.append(now)
    return GroupPlan(tuple(deletions), creations, min(waits, default=None))


def plan_removed_groups(known_groups: Iterable[str], workers: Iterable[Pod]) -> list[Deletion]:
    """The workers of groups that the spec does not have (any more). `known_groups` are values of the group label."""
    known = set(known_groups)
    return [
        Deletion(pod, "its group is not in the spec any more")
        for pod in workers
        if not is_terminating(pod) and pod.metadata.labels.get(labels.GROUP) not in known
    ]


def _broken(pods: Iterable[Pod], now: float, replace_at: float) -> list[Deletion]:
    if now < replace_at:
        return []
    found = ((pod, why_replace(pod)) for pod in pods if not is_terminating(pod))
    return [Deletion(pod, why, broken=True) for pod, why in found if why is not None]


def _broken_replicas(
    group: WorkerGroupSpec, replicas: Iterable[_Replica], now: float, replace_at: float, named: Collection[str]
) -> Iterator[Deletion]:
    named = {*named, *group.workers_to_delete}
    for replica in replicas:
        if chosen := [pod for pod in replica.live if pod.metadata.name in named]:
            yield from _whole(replica, chosen[0], "scaleStrategy.workersToDelete names it", broken=False)
        elif broken := _broken(replica.live, now, replace_at):
            yield from _whole(replica, broken[0].pod, broken[0].why, broken=True)
        elif _torn(group, replica):
            for pod in replica.live:
                yield Deletion(pod, "another host of its replica is gone", broken=True)


def _outdated(pods: Iterable[Pod], template: str | None) -> list[Deletion]:
    """The pods to which a corrected template can still come before they do anything."""
    return [
        Deletion(pod, "its template was changed before it ran", unchanged=True)
        for pod in pods
        if template is not None
        and pod.status.phase in (None, "", "Pending")
        and not is_terminating(pod)
        and pod.metadata.annotations.get(labels.TEMPLATE_HASH, template) != template
        and why_replace(pod) is None
    ]


def _outdated_replicas(replicas: Iterable[_Replica], template: str | None) -> Iterator[Deletion]:
    for replica in replicas:
        outdated = _outdated(replica.live, template)
        if len(outdated) == len(replica.live):
            yield from outdated


def _whole(replica: _Replica, cause: Pod, why: str, *, broken: bool) -> Iterator[Deletion]:
    for pod in replica.live:
        yield Deletion(pod, why if pod is cause else f"of {cause.metadata.name}, of the same replica, {why}", broken)


def _torn(group: WorkerGroupSpec, replica: _Replica) -> bool:
    """A replica that has lost a host after one of them began to work: the hosts can't go on without each other."""
    return len(replica.live) < group.hosts and any(pod.status.phase != "Pending" for pod in replica.live)


def _without(replicas: Iterable[_Replica], others: Iterable[_Replica]) -> list[_Replica]:
    left_out = set(others)
    return [replica for replica in replicas if replica not in left_out]


def _first(replicas: Iterator[list[Creation]]) -> tuple[tuple[Creation, ...], bool]:
    """As many whole replicas as fit into a plan, and whether there are more."""
    planned: list[Creation] = []
    for replica in replicas:
        if len(planned) >= CREATIONS_A_PASS:
            return tuple(planned), True
        planned += replica
    return tuple(planned), False


def _missing_replicas(
    group: WorkerGroupSpec, staying: Sequence[_Replica], holding: Sequence[_Replica]
) -> Iterator[list[Creation]]:
    """The pods that replicas lack: what was cut short first, then new replicas at the lowest free indexes."""
    for replica in staying:
        if len(replica.live) < group.hosts:
            present = {_number(pod, labels.HOST_INDEX) for pod in replica.live}
            missing = (host for host in range(group.hosts) if host not in present)
            yield [Creation(replica.index or 0, host, replica.name) for host in missing]
    taken = {one.index for one in (*staying, *holding)}
    free = (index for index in count() if index not in taken)
    for index in islice(free, max(0, group.desired_replicas - len(staying) - len(holding))):
        yield [Creation(index, host) for host in range(group.hosts)]


def _replicas(group: WorkerGroupSpec, pods: Iterable[Pod]) -> Iterator[_Replica]:
    shared: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        name = pod.metadata.labels.get(labels.REPLICA_NAME)
        if group.hosts == 1 or name is None:
            yield _Replica(name, _number(pod, labels.REPLICA_INDEX), [pod])
        else:
            shared[name].append(pod)
    for name, members in shared.items():
        yield _Replica(name, _number(members[0], labels.REPLICA_INDEX), members)


def _number(pod: Pod, label: str) -> int | None:
    text = pod.metadata.labels.get(label, "")
    return int(text) if text.isdecimal() else None
