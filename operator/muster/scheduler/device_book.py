"""The cluster's devices and the claims to them, as pods ask for them.

A claim with an allocation restricts its pods to where that can be used. One without is decided by the node of its first
pod: enough devices that nobody has, and that nobody was promised, have to be usable there. Who was promised devices are
the claims of pods that have a node while the claims have no allocation yet: kube-scheduler gives them theirs when it
binds the pod. Which ones it will choose nobody knows; what is chosen here only keeps count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from muster.scheduler.constraints import DeviceUse
from muster.scheduler.device_offer import Offer
from muster.scheduler.devices import (
    CLASS_PREFIX,
    Device,
    DeviceAsk,
    DeviceClassSpec,
    DeviceId,
    ResourceClaimSpec,
    Selects,
    Shortage,
    SliceSpec,
    selects_all,
)
from muster.scheduler.resources import Resources

if TYPE_CHECKING:
    from muster.scheduler.node import NodeInfo
    from muster.scheduler.task import TaskInfo

MILLI = 1000
MOST_VERDICTS = 256
_NOTHING = Resources()
ELSEWHERE = "node(s) where the pod's resourceclaim can't be used"

T = TypeVar("T")


class Devices:
    """Claims (by `namespace/name`), slices and classes (by name), and the pods on nodes that have claims.

    `changed` is called whenever one of the objects is another one than before: with the key of a claim where only pods
    that have it can be better off, else with None. `watched`: somebody tells of devices;
    without, what pods say of claims is passed over. `known`: all has been told once. `selects` reads CEL expressions.
    `reweighed` is called with the key of a claim that counts otherwise against its pods' queues.
    """

    def __init__(
        self,
        nodes: Mapping[str, NodeInfo],
        changed: Callable[[str | None], None] | None = None,
        reweighed: Callable[[str], None] | None = None,
    ) -> None:
        self._nodes = nodes
        self._changed = changed
        self._reweighed = reweighed
        self._weights: dict[str, Resources] | None = None
        self.watched = False
        self.known = False
        self.selects: Selects = selects_all
        self.claims: dict[str, ResourceClaimSpec] = {}
        self.slices: dict[str, SliceSpec] = {}
        self.classes: dict[str, DeviceClassSpec] = {}
        self._allocated: Counter[DeviceId] = Counter()
        self._users: dict[str, dict[str, TaskInfo]] = {}
        """Claim to the pods (by uid) on nodes that use it."""
        self._claims_on: dict[str, Counter[str]] = {}
        """Node to the claims of its pods, each with how many use it."""
        self._verdicts: dict[DeviceId, dict[str, bool]] = {}
        """What is known of which expressions select a device."""
        self._version = 0
        self._holds = 0
        self._held_at: dict[str, int] = {}
        """Node to when (in `_holds`) its pods with claims changed last."""
        self._offers: dict[tuple[str, bool], tuple[tuple[object, ...], Offer]] = {}
        self._local: dict[str, list[Device]] = {}
        self._shared: list[Device] = []
        self._sorted = True

    # --- changes ---

    def complete(self) -> None:
        """All that there is has been told."""
        self.watched = True
        if not self.known:
            self.known = True
            self._tell()

    def set_claim(self, spec: ResourceClaimSpec) -> None:
        """A ResourceClaim was added or changed."""
        before = self.claims.get(spec.key)
        if before != spec:
            self._count(before, -1)
            self._count(spec, 1)
            self.claims[spec.key] = spec
            self._reweigh(spec.key)
            self._tell(None if _has_devices(before) else spec.key)

    def remove_claim(self, key: str) -> None:
        """A ResourceClaim is gone."""
        before = self.claims.pop(key, None)
        if before is not None:
            self._count(before, -1)
            self._reweigh(key)
            self._tell(None if _has_devices(before) else key)

    def set_slice(self, spec: SliceSpec) -> None:
        """A ResourceSlice was added or changed."""
        if self.slices.get(spec.name) != spec:
            self._forget_devices(spec.name)
            self.slices[spec.name] = spec
            self._tell()

    def remove_slice(self, name: str) -> None:
        """A ResourceSlice is gone."""
        if name in self.slices:
            self._forget_devices(name)
            del self.slices[name]
            self._tell()

    def set_class(self, spec: DeviceClassSpec) -> None:
        """A DeviceClass was added or changed."""
        if self.classes.get(spec.name) != spec:
            self.classes[spec.name] = spec
            self._tell()

    def remove_class(self, name: str) -> None:
        """A DeviceClass is gone."""
        if self.classes.pop(name, None) is not None:
            self._tell()

    def _forget_devices(self, slice_name: str) -> None:
        self._sorted = False
        before = self.slices.get(slice_name)
        for device in before.devices if before is not None else ():
            self._verdicts.pop(device.id, None)

    def _count(self, claim: ResourceClaimSpec | None, sign: int) -> None:
        if claim is None or claim.allocation is None:
            return
        for device in claim.allocation.devices:
            self._allocated[device] += sign
            if not self._allocated[device]:
                del self._allocated[device]

    def _tell(self, claim: str | None = None) -> None:
        self._version += 1
        self._offers.clear()
        if self._changed is not None:
            self._changed(claim)

    def hold(self, task: TaskInfo, node: str, sign: int) -> None:
        """A pod with claims is on a node now (1), or no more (-1)."""
        use = task.shape.devices
        self._holds += 1
        self._held_at[node] = self._holds
        for key in use.claims if use is not None else ():
            users = self._users.setdefault(key, {})
            on_node = self._claims_on.setdefault(node, Counter())
            on_node[key] += sign
            if sign > 0:
                users[task.uid] = task
                continue
            users.pop(task.uid, None)
            if not users:
                del self._users[key]
            if not on_node[key]:
                del on_node[key]
            if not on_node:
                del self._claims_on[node]
        if node not in self._claims_on:
            del self._held_at[node]

    # --- claims ---

    def hurdle(self, use: DeviceUse) -> str | None:
        """Why a pod with these claims can go nowhere yet; None when it can."""
        if not self.watched:
            return None
        if not self.known:
            return "the cluster's devices have not been read yet"
        if use.unmade:
            return f'no ResourceClaim has been made for "{use.unmade[0]}" yet'
        return next((why for key in use.claims if (why := self._fault(key)) is not None), None)

    def _fault(self, key: str) -> str | None:
        claim = self.claims.get(key)
        if claim is None:
            return f'resourceclaim "{key.partition("/")[2]}" not found'
        if claim.leaving:
            return f'resourceclaim "{claim.name}" is being deleted'
        if claim.allocation is not None:
            return None
        for request in claim.requests:
            missing = [ask.device_class for ask in request.alternatives if ask.device_class not in self.classes]
            if missing and len(missing) == len(request.alternatives):
                return f'resourceclaim "{claim.name}" asks for device class "{missing[0]}", which does not exist'
        return None

    # --- quota ---

    @property
    def counted(self) -> bool:
        """Whether devices count against queues."""
        return self._weights is not None

    def count_in_queues(self, *, on: bool) -> None:
        """Have devices count against the queues of those who claim them, or not."""
        if on is self.counted:
            return
        self._weights = {key: _weight(claim) for key, claim in self.claims.items()} if on else None
        if self._reweighed is not None:
            for key in self.claims:
                self._reweighed(key)

    def weigh(self, key: str) -> Resources:
        """The devices that the claim asks for, by class; those it would take of the first alternative.

        All devices that there are count as those that it has got, before that as one.
        """
        return (self._weights or {}).get(key, _NOTHING)

    def _reweigh(self, key: str) -> None:
        before = self.weigh(key)
        if self._weights is not None:
            self._weights.pop(key, None)
            if key in self.claims:
                self._weights[key] = _weight(self.claims[key])
        if self._reweighed is not None and self.weigh(key) != before:
            self._reweighed(key)

    def totals(self) -> Resources:
        """How many devices of each class there are."""
        self._sort()
        devices = [*(each for local in self._local.values() for each in local), *self._shared]
        amounts = {
            f"{CLASS_PREFIX}{name}": MILLI * sum(self._matches(DeviceAsk(name), device) for device in devices)
            for name in self.classes
        }
        return Resources(scalars=amounts)

    # --- nodes ---

    def objection(self, use: DeviceUse, node: NodeInfo, *, later: bool = False) -> Shortage | str | None:
        """What speaks against the node for a pod with these claims; `later` is when the leaving pods are gone."""
        claims = [claim for key in use.claims if (claim := self.claims.get(key)) is not None]
        pending = []
        for claim in claims:
            if claim.allocation is None:
                pending.append(claim)
            elif not claim.allocation.reach.covers(node.name, node.labels):
                return ELSEWHERE
        if not pending:
            return None
        offer = self._offer(node, later=later)
        new = []
        for claim in pending:
            places = self._places(claim.key, later=later)
            if not places:
                new.append(claim)
            elif node.name not in places and not offer.reaches(claim.key):
                return ELSEWHERE
        return offer.answer(new, self._matches)

    def content(self, use: DeviceUse) -> object:
        """Equal for pods that the same nodes have devices for: those whose own claims ask for the same.

        A claim that has devices, or that other pods on nodes use too, is like no other.
        """
        claims = [self.claims.get(key) for key in use.claims]
        own = tuple(
            claim.requests if claim is not None and claim.allocation is None and key not in self._users else key
            for key, claim in zip(use.claims, claims, strict=True)
        )
        return (own, use.unmade, use.delegated)

    def shortage(self, use: DeviceUse, nodes: Iterable[NodeInfo]) -> Shortage | None:
        """What is lacking on the node that lacks least; None where devices are not the problem."""
        found = [each for node in nodes if isinstance(each := self.objection(use, node), Shortage)]
        return max(found, key=lambda each: (each.free, each.total, each.device_class), default=None)

    def _places(self, key: str, *, later: bool) -> set[str]:
        """The nodes of the pods that use the claim."""
        users = self._users.get(key, {}).values()
        return {task.node for task in users if task.node and not (later and task.leaves)}

    def _offer(self, node: NodeInfo, *, later: bool) -> Offer:
        """What is to be had on the node, worked out when something about it has changed."""
        self._sort()
        held = self._holds if self._shared else self._held_at.get(node.name, 0)
        stamp = (self._version, held, node.spec, self.selects)
        known = self._offers.get((node.name, later))
        if known is not None and all(old is new or old == new for old, new in zip(known[0], stamp, strict=True)):
            return known[1]
        offer = self._make_offer(node, later=later)
        self._offers[node.name, later] = (stamp, offer)
        return offer

    def _make_offer(self, node: NodeInfo, *, later: bool) -> Offer:
        """Only where there are devices that several nodes can use does it matter what pods elsewhere were promised."""
        names = sorted({*self._claims_on, node.name}) if self._shared else [node.name]
        offer = Offer(self._usable(node))
        for found in [each for name in names if (each := self._nodes.get(name)) is not None]:
            usable = self._usable(found)
            freed = self._freed_on(found.name) if later else Counter[DeviceId]()
            offer.taken |= {device.id for device in usable if self._allocated[device.id] > freed[device.id]}
            for key in sorted(self._claims_on.get(found.name, ())):
                claim = self.claims.get(key)
                waits = claim is not None and claim.allocation is None and found.name in self._places(key, later=later)
                if claim is not None and waits and key not in offer.promised:
                    offer.promise(key, claim.requests, usable, self._matches)
        return offer

    def _freed_on(self, name: str) -> Counter[DeviceId]:
        """The devices of claims that only leaving pods use: Kubernetes takes the allocation away with the last one."""
        freed: Counter[DeviceId] = Counter()
        for key in self._claims_on.get(name, ()):
            claim = self.claims.get(key)
            if claim is not None and claim.allocation is not None and not self._places(key, later=True):
                freed.update(claim.allocation.devices)
        return freed

    def _usable(self, node: NodeInfo) -> list[Device]:
        """The devices that can be used on the node, those of its own first."""
        self._sort()
        shared = [device for device in self._shared if device.reach.covers(node.name, node.labels)]
        return [*self._local.get(node.name, ()), *shared]

    def _sort(self) -> None:
        """Sort the devices of the newest generation of each pool by where they can be used."""
        if self._sorted:
            return
        self._sorted = True
        newest: dict[tuple[str, str], int] = {}
        for each in self.slices.values():
            pool = (each.driver, each.pool)
            newest[pool] = max(each.generation, newest.get(pool, each.generation))
        local: defaultdict[str, list[Device]] = defaultdict(list)
        shared: list[Device] = []
        for _, each in sorted(self.slices.items()):
            if each.generation == newest[each.driver, each.pool]:
                for device in each.devices:
                    (local[device.reach.node] if device.reach.node else shared).append(device)
        self._local, self._shared = dict(local), shared

    def _matches(self, ask: DeviceAsk, device: Device) -> bool:
        device_class = self.classes.get(ask.device_class)
        if device_class is None:
            return False
        verdicts = self._verdicts.setdefault(device.id, {})
        if len(verdicts) > MOST_VERDICTS:
            verdicts.clear()  # claims that are gone leave theirs behind
        for expression in (*device_class.selectors, *ask.selectors):
            verdict = verdicts.get(expression)
            if verdict is None:
                verdict = verdicts[expression] = self.selects(expression, device)
            if not verdict:
                return False
        return True


def _has_devices(claim: ResourceClaimSpec | None) -> bool:
    return claim is not None and claim.allocation is not None


def _weight(claim: ResourceClaimSpec) -> Resources:
    amounts: Counter[str] = Counter()
    got = len(claim.allocation.devices) if claim.allocation is not None else 1
    for request in claim.requests:
        ask = request.alternatives[0] if request.alternatives else None
        if ask is not None and not ask.admin:
            amounts[f"{CLASS_PREFIX}{ask.device_class}"] += MILLI * (got if ask.count is None else ask.count)
    return Resources(scalars=dict(amounts))
