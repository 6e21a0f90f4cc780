"""Pods that the default scheduler binds: how they are known, pinned, and read."""

from __future__ import annotations

from typing import Any

import pytest

from muster.engine.delegation import delegation_of, delegation_patch, pinned_node
from muster.engine.pod_specs import task_spec
from muster.kube.objects import Pod
from muster.scheduler.constraints import DeviceUse
from muster.scheduler.specs import Delegation, TaskStatus
from tests.engine.pod_manifests import pod
from tests.engine.scripted_api import patched

GATE = "muster.dev/gang"
AT = "2026-01-01T00:00:05Z"
NAMES = ("muster",)


def held(**options: Any) -> Pod:
    return pod(**{"group": "pg", "scheduler": "default-scheduler", "gates": (GATE,), **options})


def delegated(found: Pod, node: str = "n1", now: float = 0.0) -> Pod:
    patch = delegation_patch(found, GATE, node, now)
    assert patch is not None
    return patched(found, patch)


def terms(*found: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(found)}}}


ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
NOT_N9 = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]}
ON_N1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}

KNOWN: dict[str, tuple[Pod, Delegation | None]] = {
    "held by our gate": (held(), Delegation()),
    "without a group": (held(group=None), None),
    "without our gate": (held(gates=("other",)), None),
    "of another scheduler": (held(scheduler="third"), None),
    "pinned": (delegated(held(), now=1767225605.0), Delegation("n1", 1767225605.0)),
    "pinned by somebody else": (held(gates=(), affinity=terms(ON_N1)), None),
    "a note without a pin": (held(gates=(), annotations={"muster.dev/delegated-at": AT}), None),
    "a note that is no time": (
        held(gates=(), affinity=terms(ON_N1), annotations={"muster.dev/delegated-at": "soon"}),
        Delegation("n1", 1767225600.0),
    ),
    "bound": (
        held(gates=(), node="n2", annotations={"muster.dev/delegated-at": AT}),
        Delegation("n2", 1767225605.0),
    ),
}


@pytest.mark.parametrize(("found", "delegation"), KNOWN.values(), ids=KNOWN.keys())
def test_what_is_ours_to_delegate_is_known_by_gate_and_group_and_later_by_note_and_pin(
    found: Pod, delegation: Delegation | None
) -> None:
    assert delegation_of(found, GATE) == delegation


UNPINNED = {
    "still held by our gate": held(affinity=terms(ON_N1), annotations={"muster.dev/delegated-at": AT}),
    "of our own scheduler": held(
        scheduler="muster", gates=(), affinity=terms(ON_N1), annotations={"muster.dev/delegated-at": AT}
    ),
}


@pytest.mark.parametrize("found", UNPINNED.values(), ids=UNPINNED.keys())
def test_a_note_on_a_pod_that_was_not_handed_over_says_nothing(found: Pod) -> None:
    assert pinned_node(found) is None


AFFINITIES = {
    "none": None,
    "empty": {},
    "preferred only": {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": ZONE}]}
    },
    "a term": terms(ZONE),
    "terms, by name too": terms(ZONE, NOT_N9, {**ZONE, **NOT_N9}),
    "pinned by its owner": terms(ON_N1),
    "a term that matches nothing": terms(ZONE, {}),
}


@pytest.mark.parametrize("affinity", AFFINITIES.values(), ids=AFFINITIES.keys())
def test_a_pinned_pod_can_go_to_its_node_only_and_is_scheduled_as_if_it_were_not_pinned(
    affinity: dict[str, Any] | None,
) -> None:
    before = held(**({} if affinity is None else {"affinity": affinity}))
    after = delegated(before)
    assert pinned_node(after) == "n1"
    assert after.spec.scheduling_gates == []
    old, new = (task_spec(each, scheduler_names=NAMES, gate=GATE) for each in (before, after))
    assert old is not None
    assert new is not None
    assert new.scheduling == old.scheduling
    assert (old.status, new.status, new.node) == (TaskStatus.PENDING, TaskStatus.PENDING, None)


def test_only_our_gates_are_taken_away_and_only_from_this_very_pod() -> None:
    patch = delegation_patch(held(gates=("other", GATE)), GATE, "n1", 0.0)
    assert patch is not None
    assert patch[0] == {"op": "test", "path": "/metadata/uid", "value": "uid-p"}
    assert [each.name for each in delegated(held(gates=("other", GATE))).spec.scheduling_gates] == ["other"]
    assert delegation_patch(held(gates=("other",)), GATE, "n1", 0.0) is None


def claims(*entries: dict[str, Any], made: list[dict[str, Any]] | None = None, **options: Any) -> DeviceUse | None:
    spec = task_spec(
        held(resourceClaims=list(entries), status={"resourceClaimStatuses": made or []}, **options),
        scheduler_names=NAMES,
        gate=GATE,
    )
    assert spec is not None
    return spec.scheduling.devices


NAMED = {"name": "a", "resourceClaimName": "mine"}
TEMPLATE = {"name": "b", "resourceClaimTemplateName": "t"}


def test_a_pod_s_claims_are_those_that_it_names_and_those_that_were_made_for_it() -> None:
    assert claims() is None
    assert claims(NAMED) == DeviceUse(("default/mine",))
    assert claims(NAMED, TEMPLATE) == DeviceUse(("default/mine",), ("b",))
    made = [{"name": "b", "resourceClaimName": "p-b-x"}]
    assert claims(NAMED, TEMPLATE, made=made) == DeviceUse(("default/mine", "default/p-b-x"))
    assert claims(TEMPLATE, made=[{"name": "b"}]) == DeviceUse(), "it turned out to need none"


def test_a_pod_of_our_own_scheduler_is_not_delegated() -> None:
    assert claims(NAMED, scheduler="muster") == DeviceUse(("default/mine",), delegated=False)
