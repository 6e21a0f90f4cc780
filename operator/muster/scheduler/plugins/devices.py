"""Devices (dynamic resource allocation): pods with claims wait until those are made, and go where devices are free."""

from __future__ import annotations

from collections.abc import Callable

from muster.scheduler.device_book import Devices
from muster.scheduler.judge import CheckMaker, NodeCheck
from muster.scheduler.node import NodeInfo
from muster.scheduler.reasons import Code, Reason, Wake
from muster.scheduler.task import Shape

DevicesGetter = Callable[[], Devices]


def claim_hurdle(devices: DevicesGetter) -> Callable[[Shape], Reason | None]:
    """A pod whose claims are not made can go nowhere, and no node would change that."""

    def hurdle(shape: Shape) -> Reason | None:
        problem = devices().hurdle(shape.devices) if shape.devices is not None else None
        if problem is None:
            return None
        return Reason(Code.RESOURCE_CLAIM_NOT_READY, detail=problem, wakes=(Wake.DEVICES,))

    return hurdle


def claimed_devices(devices: DevicesGetter) -> CheckMaker:
    """What a claim has got has to be usable on the node, what it has not got has to be free there."""

    def make(shape: Shape, later: bool) -> NodeCheck | None:
        use, book = shape.devices, devices()
        if use is None or not book.watched:
            return None

        def check(node: NodeInfo) -> str | None:
            found = book.objection(use, node, later=later)
            return None if found is None else str(found)

        return check

    return make
