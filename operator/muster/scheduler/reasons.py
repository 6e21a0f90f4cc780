"""Why a gang waits: every reason in one place.

A refusal is a value with its numbers, never a formatted string; `describe` makes the text at the edge. A gang has one
dominant reason: the classes of `ReasonClass` are in the order of rank, and the first that applies is the one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from muster.scheduler.resources import format_amount
from muster.scheduler.suggested import Suggestion


class ReasonClass(Enum):
    """What kind of thing has to change, in the order of rank (first wins)."""

    MISCONFIGURED = "misconfigured"
    GATED = "gated"
    QUEUE = "queue"
    NEVER = "never"
    INCOMPLETE = "incomplete"
    QUOTA = "quota"
    ROOM = "room"
    RESERVED = "reserved"
    VICTIMS = "victims"
    NEXT = "next"

    @property
    def rank(self) -> int:
        """0 for the class that dominates all others."""
        return _RANKS[self]

    @property
    def for_room(self) -> bool:
        """Whether the gang could be placed, if only there were room, quota or a turn for it."""
        return self.rank >= ReasonClass.QUOTA.rank


_RANKS = {each: rank for rank, each in enumerate(ReasonClass)}


class Code(Enum):
    """Every reason. The value is what users see as `code`."""

    INVALID_POD_GROUP = "InvalidPodGroup"
    NEEDS_DEFAULT_SCHEDULER = "NeedsDefaultScheduler"
    PODS_GATED = "PodsGated"
    QUEUE_MISSING = "QueueMissing"
    QUEUE_BROKEN = "QueueBroken"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    QUEUE_CLOSED = "QueueClosed"
    LARGER_THAN_QUEUE = "LargerThanQueue"
    LARGER_THAN_CLUSTER = "LargerThanCluster"
    LARGER_THAN_EVERY_NODE = "LargerThanEveryNode"
    POD_GROUP_MISSING = "PodGroupMissing"
    NOT_ENOUGH_PODS = "NotEnoughPods"
    NOT_ENOUGH_PODS_OF_ROLE = "NotEnoughPodsOfRole"
    VOLUME_NOT_READY = "VolumeNotReady"
    EXTENDER_REFUSED = "ExtenderRefused"
    EXTENDER_UNAVAILABLE = "ExtenderUnavailable"
    RESOURCE_CLAIM_NOT_READY = "ResourceClaimNotReady"
    QUEUE_QUOTA = "QueueQuota"
    CLUSTER_OVERCOMMIT = "ClusterOvercommit"
    NAMESPACE_QUOTA = "NamespaceQuota"
    NOT_ENOUGH_NODES = "NotEnoughNodes"
    ROOM_RESERVED = "RoomReserved"
    WAITING_FOR_RELEASE = "WaitingForRelease"
    WAITING_FOR_TURN = "WaitingForTurn"

    @property
    def reason_class(self) -> ReasonClass:
        """The class that the code belongs to."""
        return _CLASSES[self]


_CLASSES = {
    Code.INVALID_POD_GROUP: ReasonClass.MISCONFIGURED,
    Code.NEEDS_DEFAULT_SCHEDULER: ReasonClass.MISCONFIGURED,
    Code.PODS_GATED: ReasonClass.GATED,
    Code.QUEUE_MISSING: ReasonClass.QUEUE,
    Code.QUEUE_BROKEN: ReasonClass.QUEUE,
    Code.QUEUE_NOT_LEAF: ReasonClass.QUEUE,
    Code.QUEUE_CLOSED: ReasonClass.QUEUE,
    Code.LARGER_THAN_QUEUE: ReasonClass.NEVER,
    Code.LARGER_THAN_CLUSTER: ReasonClass.NEVER,
    Code.LARGER_THAN_EVERY_NODE: ReasonClass.NEVER,
    Code.POD_GROUP_MISSING: ReasonClass.INCOMPLETE,
    Code.NOT_ENOUGH_PODS: ReasonClass.INCOMPLETE,
    Code.NOT_ENOUGH_PODS_OF_ROLE: ReasonClass.INCOMPLETE,
    Code.VOLUME_NOT_READY: ReasonClass.INCOMPLETE,
    Code.EXTENDER_REFUSED: ReasonClass.INCOMPLETE,
    Code.EXTENDER_UNAVAILABLE: ReasonClass.INCOMPLETE,
    Code.RESOURCE_CLAIM_NOT_READY: ReasonClass.INCOMPLETE,
    Code.QUEUE_QUOTA: ReasonClass.QUOTA,
    Code.CLUSTER_OVERCOMMIT: ReasonClass.QUOTA,
    Code.NAMESPACE_QUOTA: ReasonClass.QUOTA,
    Code.NOT_ENOUGH_NODES: ReasonClass.ROOM,
    Code.ROOM_RESERVED: ReasonClass.RESERVED,
    Code.WAITING_FOR_RELEASE: ReasonClass.VICTIMS,
    Code.WAITING_FOR_TURN: ReasonClass.NEXT,
}


class Wake(Enum):
    """What kind of event could end the wait."""

    GANG = "a pod or the PodGroup of the gang changes"
    MENDED_QUEUE = "the queue is made, opened or mended"
    QUEUE = "the queue frees quota or changes"
    CLUSTER = "the cluster frees or gains resources"
    VOLUMES = "a volume claim gets its volume, or a volume changes"
    DEVICES = "a resource claim is made or changes, or devices do"
    NODES = "a node is added, freed or changed"
    VICTIMS = "pods that may be evicted for it run"
    EXTENDER = "the scheduler's extender is asked again, as it is from time to time"


class Advice(Enum):
    """What the user should do."""

    WAIT = "wait"
    CHANGE = "change"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class NearMiss:
    """The node that comes closest, and what it lacks (`cpu 500m`)."""

    node: str
    lacks: str


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has some of what is lacking: `amount` of the reason's resource, used by a PodGroup (empty: pods of others).

    `reclaimable`: an action that is configured may evict pods of it for the gang that waits. `held`: the PodGroup does
    not use it yet, room is held for it.
    """

    pod_group: str
    queue: str
    amount: int
    reclaimable: bool = False
    held: bool = False


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason with its numbers. Fields that say nothing are None or empty.

    `resource` is the dimension that `requested`, `used`, `free` and `limit` are in (milli-CPU, bytes, milli-units,
    whole pods). `have`/`need` count members. `queue` is the queue that blocks. `member` is the pod that finds no
    place. `node` is the one that the numbers are of, `nodes` a histogram of nodes by what is wrong with them, most
    frequent first. `have_if_empty` says that waiting does not help: so many members, too few, would have a place at
    most if nothing else ran on the nodes that there are. `with_companions`: the amount that is requested has the pods
    in it that the gang will need later.

    The rest does not make two reasons differ. `since` is when the gang began to wait. What changes with every pod that
    starts or ends anywhere is worked out only for who asks (`inquiry.py`): `position` among the waiting gangs of its
    queue (from 1), `ahead` how many go before it, `waited` seconds, `holders` the largest first, `suggestion`; of a
    gang that is larger than its queue also `used` and `free`, by and beside other gangs, and in `detail` by whom most.
    """

    code: Code
    resource: str | None = None
    requested: int | None = None
    used: int | None = None
    free: int | None = None
    limit: int | None = None
    have: int | None = None
    need: int | None = None
    queue: str | None = None
    role: str | None = None
    member: str | None = None
    detail: str = ""
    node: str | None = None
    have_if_empty: int | None = None
    with_companions: bool = False
    nodes: tuple[tuple[str, int], ...] = ()
    near_miss: NearMiss | None = None
    wakes: tuple[Wake, ...] = ()
    more_nodes_help: bool = False
    since: float | None = field(default=None, compare=False)
    position: int | None = field(default=None, compare=False)
    ahead: int | None = field(default=None, compare=False)
    waited: int | None = field(default=None, compare=False)
    holders: tuple[Holder, ...] = field(default=(), compare=False)
    suggestion: Suggestion | None = field(default=None, compare=False)

    @property
    def reason_class(self) -> ReasonClass:
        """The class, which gives the rank."""
        return self.code.reason_class

    @property
    def topic(self) -> tuple[str, str | None, str | None, str | None]:
        """What it is about, without its numbers: code, queue, resource and role."""
        return (self.code.value, self.queue, self.resource, self.role)

    @property
    def gist(self) -> tuple[object, ...]:
        """What it says without the numbers that others change: its topic, and what the gang itself asks for."""
        return (*self.topic, self.requested, self.need, self.have_if_empty is not None)

    @property
    def awaits(self) -> tuple[Wake, ...]:
        """What could end the wait, for who asks: `wakes`; where nothing is parked under any, what its class needs."""
        return self.wakes or _AWAITS_ON.get(self.code) or _AWAITS[self.reason_class]

    @property
    def advice(self) -> Advice:
        """Wait, change the request, or ask the administrator."""
        if self.have_if_empty is not None:
            return Advice.CHANGE
        return _ADVICE_ON.get(self.code) or _ADVICE[self.reason_class]


_AWAITS = {
    ReasonClass.MISCONFIGURED: (Wake.GANG,),
    ReasonClass.GATED: (Wake.GANG,),
    ReasonClass.QUEUE: (Wake.MENDED_QUEUE,),
    ReasonClass.NEVER: (Wake.NODES, Wake.GANG),
    ReasonClass.INCOMPLETE: (Wake.GANG,),
    ReasonClass.QUOTA: (Wake.QUEUE,),
    ReasonClass.ROOM: (Wake.NODES,),
    ReasonClass.RESERVED: (Wake.NODES,),
    ReasonClass.VICTIMS: (Wake.NODES,),
    ReasonClass.NEXT: (Wake.QUEUE, Wake.CLUSTER),
}
_AWAITS_ON = {Code.LARGER_THAN_QUEUE: (Wake.QUEUE, Wake.GANG)}
_ADVICE = {
    ReasonClass.MISCONFIGURED: Advice.CHANGE,
    ReasonClass.GATED: Advice.ASK,
    ReasonClass.QUEUE: Advice.ASK,
    ReasonClass.NEVER: Advice.CHANGE,
    ReasonClass.INCOMPLETE: Advice.WAIT,
    ReasonClass.QUOTA: Advice.WAIT,
    ReasonClass.ROOM: Advice.WAIT,
    ReasonClass.RESERVED: Advice.WAIT,
    ReasonClass.VICTIMS: Advice.WAIT,
    ReasonClass.NEXT: Advice.WAIT,
}
_ADVICE_ON = {
    Code.POD_GROUP_MISSING: Advice.CHANGE,
    Code.VOLUME_NOT_READY: Advice.CHANGE,
    Code.RESOURCE_CLAIM_NOT_READY: Advice.CHANGE,
}


def dominant(reasons: Iterable[Reason]) -> Reason | None:
    """The reason of the highest rank; of equals the first given."""
    return min(reasons, key=lambda reason: reason.reason_class.rank, default=None)


def describe(reason: Reason) -> str:
    """The reason in plain words, numbers included."""
    return _TEXTS[reason.code](reason)


def amount(reason: Reason, value: int | None) -> str:
    """A number of the reason as `cpu 3`."""
    if reason.resource is None or value is None:
        return "an unknown amount"
    return f"{reason.resource} {format_amount(reason.resource, value)}"


def describe_nodes(reason: Reason) -> str:
    """`0/5 nodes are available: 3 Insufficient cpu, 2 node(s) are cordoned`."""
    nodes = sum(count for _, count in reason.nodes)
    if not nodes:
        return "there are no nodes"
    parts = ", ".join(f"{count} {why}" for why, count in reason.nodes)
    return f"0/{nodes} nodes are available: {parts}"


def _near_miss(reason: Reason) -> str:
    near = reason.near_miss
    return f" (closest: {near.node} lacks {near.lacks})" if near else ""


def _if_empty(reason: Reason) -> str:
    if reason.have_if_empty is None:
        return ""
    if not reason.have_if_empty:
        return "; nor would there be a place if nothing else ran on these nodes"
    have = f"only {reason.have_if_empty} of {reason.need} would have a place"
    if reason.have_if_empty == reason.need:
        have = "there would be no room for the pod that the gang will need later"
    return f"; even if nothing else ran on these nodes, {have}"


def _members(reason: Reason) -> str:
    return f"{reason.have} of {reason.need} members have a place; " if reason.need is not None else ""


def _extender_refused(reason: Reason) -> str:
    about = reason.member or (f"queue {reason.queue}" if reason.queue else "it")
    return f"the scheduler's extender refuses {about}" + (f": {reason.detail}" if reason.detail else "")


def _queue_quota(reason: Reason) -> str:
    return (
        f"queue {reason.queue} has too little quota left: asked for {amount(reason, reason.requested)}, "
        f"used {amount(reason, reason.used)} of {amount(reason, reason.limit)}"
        + (f", {reason.detail}" if reason.detail else "")
    )


def _cluster_overcommit(reason: Reason) -> str:
    nodes = f"; no room for {reason.member} either: {describe_nodes(reason)}{_near_miss(reason)}{_if_empty(reason)}"
    return (
        f"the cluster is promised already: asks for {amount(reason, reason.requested)}, used and promised "
        f"{amount(reason, reason.used)} of {amount(reason, reason.limit)} (with the overcommit factor)"
        + (nodes if reason.member else "")
    )


def _larger_than_queue(reason: Reason) -> str:
    others = f", of which others hold {amount(reason, reason.used)} (the most {reason.detail})" if reason.used else ""
    return (
        f"queue {reason.queue} can never hold it: {_asks_for(reason)}, "
        f"the queue may use at most {amount(reason, reason.limit)}{others}"
    )


def _asks_for(reason: Reason) -> str:
    later = " (its submitter's pod included)" if reason.with_companions else ""
    return f"asks for {amount(reason, reason.requested)}{later}"


def _larger_than_cluster(reason: Reason) -> str:
    nodes = f"all nodes {reason.detail}" if reason.detail else "all nodes"
    return f"larger than the whole cluster: {_asks_for(reason)}, {nodes} together have {amount(reason, reason.limit)}"


def _not_enough_nodes(reason: Reason) -> str:
    wanted = f" needs {amount(reason, reason.requested)}" if reason.resource else ""
    held = f"; {reason.detail}" if reason.detail else ""
    nodes = f"{describe_nodes(reason)}{_near_miss(reason)}{_if_empty(reason)}"
    return f"{_members(reason)}{reason.member}{wanted}: {nodes}{held}"


def _larger_than_every_node(reason: Reason) -> str:
    if reason.resource is None:
        return f"no node will ever take {reason.member}: {describe_nodes(reason)}"
    return (
        f"no node can ever hold {reason.member}: it asks for {amount(reason, reason.requested)}, "
        f"the largest node has {amount(reason, reason.limit)}{_near_miss(reason)}"
    )


_TEXTS: dict[Code, Callable[[Reason], str]] = {
    Code.INVALID_POD_GROUP: lambda r: f"the PodGroup can't be used: {r.detail}",
    Code.NEEDS_DEFAULT_SCHEDULER: lambda r: f"{r.member} can't be placed: {r.detail}",
    Code.PODS_GATED: lambda r: (
        f"{r.have} of {r.need} pods{f' of role {r.role}' if r.role else ''} may be scheduled; {r.detail}"
    ),
    Code.QUEUE_MISSING: lambda r: f"queue {r.queue} does not exist",
    Code.QUEUE_BROKEN: lambda r: f"queue {r.queue} can't be used: {r.detail}",
    Code.QUEUE_NOT_LEAF: lambda r: f"queue {r.queue} only groups other queues ({r.detail}): name one of them",
    Code.QUEUE_CLOSED: lambda r: f"queue {r.queue} is {r.detail}",
    Code.LARGER_THAN_QUEUE: _larger_than_queue,
    Code.LARGER_THAN_CLUSTER: _larger_than_cluster,
    Code.LARGER_THAN_EVERY_NODE: _larger_than_every_node,
    Code.POD_GROUP_MISSING: lambda r: f"PodGroup {r.detail} does not exist",
    Code.NOT_ENOUGH_PODS: lambda r: f"{r.have} of {r.need} pods exist",
    Code.NOT_ENOUGH_PODS_OF_ROLE: lambda r: f"{r.have} of {r.need} pods of role {r.role} exist",
    Code.VOLUME_NOT_READY: lambda r: f"{r.member} can't be placed yet: {r.detail}",
    Code.EXTENDER_REFUSED: _extender_refused,
    Code.EXTENDER_UNAVAILABLE: lambda r: f"the scheduler's extender can't be asked: {r.detail}",
    Code.RESOURCE_CLAIM_NOT_READY: lambda r: f"{r.member} can't be placed yet: {r.detail}",
    Code.QUEUE_QUOTA: _queue_quota,
    Code.CLUSTER_OVERCOMMIT: _cluster_overcommit,
    Code.NAMESPACE_QUOTA: lambda r: (
        f"ResourceQuota {r.detail} has no room: asked for {amount(r, r.requested)}, "
        f"used {amount(r, r.used)} of {amount(r, r.limit)}"
    ),
    Code.NOT_ENOUGH_NODES: _not_enough_nodes,
    Code.ROOM_RESERVED: lambda r: (
        f"there is room, but it is held for a gang of queue {r.queue} that has waited too long"
        f"{f'; beside it only what is over by {r.detail} is started' if r.detail else ''}"
    ),
    Code.WAITING_FOR_RELEASE: lambda r: (
        f"{r.have} of {r.need} members have a place now, the others wait for pods that are leaving"
    ),
    Code.WAITING_FOR_TURN: lambda r: "its turn has not come yet" + (f" ({r.detail})" if r.detail else ""),
}
