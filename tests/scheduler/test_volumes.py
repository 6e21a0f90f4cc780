"""Pods with volumes: where those can be used, made or chosen, and how many a node takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduler.conf import load_configuration
from muster.scheduler.constraints import PodConstraints, SelectorTerm
from muster.scheduler.outcome import Outcome
from muster.scheduler.plugins.volumes import CONFLICT, NONE_LEFT, OTHER_ZONE, TOO_MANY
from muster.scheduler.reasons import ReasonClass, describe
from muster.scheduler.selectors import Operator, Requirement
from muster.scheduler.specs import TaskStatus
from muster.scheduler.volumes import NO_PROVISIONER, ClaimSpec, CsiNodeSpec, StorageClassSpec, VolumeSpec
from muster.testing import Cluster, Spec, bindings, gang, pod, pod_group
from muster.testing_company import zone_nodes
from tests.scheduler.audit import audit

Stored = ClaimSpec | VolumeSpec | StorageClassSpec | CsiNodeSpec
ZONE = "topology.kubernetes.io/zone"


def uses(*claims: str) -> PodConstraints:
    return PodConstraints(claims=tuple(f"default/{name}" for name in claims))


def claim(name: str = "data", volume: str = "", **options: object) -> ClaimSpec:
    found = ClaimSpec("default", name, volume=volume, storage_class="late", size=10)
    return replace(found, **options)  # type: ignore[arg-type]


def inside(key: str, *values: str) -> tuple[SelectorTerm, ...]:
    return (SelectorTerm((Requirement(key, Operator.IN, values),)),)


def volume(name: str = "v", **options: object) -> VolumeSpec:
    return replace(VolumeSpec(name, storage_class="late", size=10), **options)  # type: ignore[arg-type]


LATE = StorageClassSpec("late", "csi.example", late=True)
LOCAL = StorageClassSpec("late", NO_PROVISIONER, late=True)
NOW = StorageClassSpec("late", "csi.example")


def cluster(stored: Iterable[Stored], *specs: Spec | list[Spec]) -> Cluster:
    made = Cluster.of(zone_nodes("ab"), *specs)
    storage = made.cache.storage
    storage.known = True
    for each in stored:
        match each:
            case ClaimSpec():
                storage.set_claim(each)
            case VolumeSpec():
                storage.set_volume(each)
            case StorageClassSpec():
                storage.set_class(each)
            case CsiNodeSpec():
                storage.set_csi_node(each)
    return made


def reason(outcome: Outcome) -> dict[str, int]:
    found = outcome.pod_groups["default/g"].reason
    assert found is not None
    return dict(found.nodes)


@pytest.mark.parametrize(
    ("stored", "where"),
    [
        pytest.param([claim(volume="v"), volume(required=inside("zone", "b"))], {"b-0"}, id="its node affinity"),
        pytest.param([claim(volume="v"), volume(labels={ZONE: "b__c"})], {"a-0", "b-0"}, id="nodes in no known zone"),
        pytest.param([claim(), LATE], {"a-0", "b-0"}, id="made anywhere"),
        pytest.param([claim(), replace(LATE, topologies=inside("zone", "b"))], {"b-0"}, id="made in one zone"),
        pytest.param([claim(), LOCAL, volume(required=inside("zone", "b"))], {"b-0"}, id="one that is there"),
        pytest.param([claim(selected_node="b-0"), LATE], {"b-0"}, id="being made there already"),
        pytest.param([claim(storage_class=None), replace(LATE, default=True)], {"a-0", "b-0"}, id="default class"),
        pytest.param(
            [claim(), LOCAL, volume("w", claim="default/data", required=inside("zone", "b"))],
            {"b-0"},
            id="kept for the claim",
        ),
    ],
)
def test_a_pod_goes_where_its_volumes_can_be(stored: list[Stored], where: set[str]) -> None:
    found = bindings(cluster(stored, gang("g", 1, scheduling=uses("data"))).cycle())
    assert set(found.values()) <= where
    assert found


NOWHERE: dict[str, tuple[list[Stored], str]] = {
    "bound elsewhere": ([claim(volume="v"), volume(required=inside("zone", "c"))], CONFLICT),
    "made elsewhere": ([claim(), replace(LATE, topologies=inside("zone", "c"))], NONE_LEFT),
    "no volume there": ([claim(), LOCAL], NONE_LEFT),
    "too small": ([claim(), LOCAL, volume(size=9)], NONE_LEFT),
    "another access mode": (
        [claim(access_modes=("ReadWriteMany",)), LOCAL, volume(access_modes=("ReadWriteOnce",))],
        NONE_LEFT,
    ),
    "another mode": ([claim(mode="Block"), LOCAL, volume()], NONE_LEFT),
    "released": ([claim(), LOCAL, volume(available=False)], NONE_LEFT),
    "kept for another": ([claim(), LOCAL, volume(claim="default/other")], NONE_LEFT),
}


@pytest.mark.parametrize("case", NOWHERE)
def test_where_no_node_has_the_volume_the_reason_says_so(case: str) -> None:
    stored, why = NOWHERE[case]
    outcome = cluster(stored, gang("g", 1, scheduling=uses("data"))).cycle()
    assert not outcome.bindings
    assert reason(outcome) == {why: 2}


NOT_READY: dict[str, tuple[list[Stored], str]] = {
    "missing": ([], 'persistentvolumeclaim "data" not found'),
    "going": ([claim(leaving=True), LATE], 'persistentvolumeclaim "data" is being deleted'),
    "lost": ([claim(volume="v", lost=True)], "non-existent"),
    "volume missing": ([claim(volume="v")], 'persistentvolume "v" not found'),
    "immediate": ([claim(), NOW], 'unbound immediate PersistentVolumeClaims: "data"'),
    "class missing": ([claim()], 'unbound immediate PersistentVolumeClaims: "data"'),
}


@pytest.mark.parametrize("case", NOT_READY)
def test_a_claim_that_is_not_ready_buys_no_nodes(case: str) -> None:
    stored, words = NOT_READY[case]
    made = cluster(stored, gang("g", 1, scheduling=uses("data")))
    outcome = made.cycle()
    found = outcome.pod_groups["default/g"].reason
    assert found is not None
    assert found.reason_class is ReasonClass.INCOMPLETE
    assert words in describe(found)
    assert outcome.pods["default/g-w-0"].reason == ""
    made.cache.storage.set_claim(claim(volume="v"))
    made.cache.storage.set_volume(volume())
    assert bindings(made.cycle())


def test_a_volume_in_a_zone_keeps_the_pod_out_of_others() -> None:
    stored: list[Stored] = [claim(volume="v"), volume(labels={ZONE: "b"})]
    made = cluster(stored, gang("g", 1, scheduling=uses("data")))
    for name in ("a-0", "b-0"):
        spec = made.cache.nodes[name].spec
        assert spec is not None
        made.cache.set_node(replace(spec, labels={ZONE: name[0]}))
    assert bindings(made.cycle()) == {"g-w-0": "b-0"}
    made.cache.storage.set_volume(volume(labels={"failure-domain.beta.kubernetes.io/zone": "c"}))
    made.add(gang("g", 1, scheduling=uses("data")))
    made.delete("g-w-0")
    made.add(gang("g", 1, scheduling=uses("data")))
    assert reason(made.cycle()) == {OTHER_ZONE: 2}


def test_two_pods_do_not_get_the_same_local_volume() -> None:
    stored: list[Stored] = [claim("one"), claim("two"), LOCAL, volume(required=inside("host", "a-0"))]
    members = [pod(f"g-w-{name}", "g", scheduling=uses(name)) for name in ("one", "two")]
    made = cluster(stored, pod_group("g", 2), *members)
    assert not made.cycle().bindings
    made.cache.storage.set_volume(volume("w", required=inside("host", "b-0")))
    outcome = made.cycle()
    assert bindings(outcome) == {"g-w-one": "a-0", "g-w-two": "b-0"}
    assert {each.pod: each.volumes for each in outcome.bindings} == {
        "g-w-one": (("default/one", "v"),),
        "g-w-two": (("default/two", "w"),),
    }


SHARED: list[Stored] = [LOCAL, volume("v"), volume("w", size=20)]
"""Volumes that every node reaches."""


def chosen(outcome: Outcome) -> dict[str, tuple[tuple[str, str], ...]]:
    return {each.pod: each.volumes for each in outcome.bindings}


def one_of(name: str, cpu: float = 1) -> list[Spec]:
    """A gang of one pod, with a claim of its own."""
    return gang(name, 1, cpu, scheduling=uses(name))


def test_two_pods_on_two_nodes_do_not_get_the_same_volume() -> None:
    members = [pod(f"g-w-{name}", "g", 3, scheduling=uses(name)) for name in ("one", "two")]
    made = cluster([claim("one"), claim("two"), *SHARED], pod_group("g", 2), *members)
    outcome = made.cycle()
    assert set(bindings(outcome).values()) == {"a-0", "b-0"}
    assert chosen(outcome) == {"g-w-one": (("default/one", "v"),), "g-w-two": (("default/two", "w"),)}
    audit(made.cache)


def test_a_gang_for_which_there_are_too_few_volumes_is_not_started() -> None:
    members = [pod(f"g-w-{name}", "g", 3, scheduling=uses(name)) for name in ("one", "two")]
    made = cluster([claim("one"), claim("two"), LOCAL, volume()], pod_group("g", 2), *members)
    assert not made.cycle().bindings
    assert not made.cache.storage.promises.items()
    audit(made.cache)


@pytest.mark.parametrize("failed", [False, True])
def test_a_volume_that_was_asked_for_is_for_nobody_else_even_if_the_binding_failed(*, failed: bool) -> None:
    made = cluster([claim("one"), claim("two"), *SHARED], one_of("one", 3))
    assert chosen(made.cycle()) == {"one-w-0": (("default/one", "v"),)}
    if failed:
        made.cache.bind_failed("uid-one-w-0")
        made.change_pod("one-w-0", gated=True)
    made.add(one_of("two", 3))
    assert chosen(made.cycle()) == {"two-w-0": (("default/two", "w"),)}
    if failed:
        made.change_pod("one-w-0", gated=False)
        assert chosen(made.cycle()) == {"one-w-0": (("default/one", "v"),)}
    audit(made.cache)


def test_when_the_pod_of_a_failed_binding_goes_its_volume_is_free_and_who_waits_for_it_is_asked() -> None:
    made = cluster([claim("one"), claim("two"), LOCAL, volume()], one_of("one", 3), one_of("two", 3))
    assert set(chosen(made.cycle())) == {"one-w-0"}
    made.cache.bind_failed("uid-one-w-0")
    made.change_pod("one-w-0", gated=True)
    assert not made.cycle().bindings
    assert not made.cycle().bindings
    made.delete("one-w-0")
    assert chosen(made.cycle()) == {"two-w-0": (("default/two", "v"),)}
    audit(made.cache)


def test_a_volume_whose_claim_shows_it_first_is_taken() -> None:
    made = cluster([claim("one", volume="v"), claim("two"), *SHARED], one_of("two"))
    assert chosen(made.cycle()) == {"two-w-0": (("default/two", "w"),)}


@pytest.mark.parametrize("change", [volume(claim="default/other"), volume(available=False), None])
def test_a_promised_volume_that_somebody_else_got_is_promised_no_more(change: VolumeSpec | None) -> None:
    made = cluster([claim("one"), *SHARED], one_of("one"))
    made.cycle()
    if change is not None:
        made.cache.storage.set_volume(change)
    else:
        made.cache.storage.remove_volume("v")
    audit(made.cache)
    made.cache.bind_failed("uid-one-w-0")
    assert chosen(made.cycle()) == {"one-w-0": (("default/one", "w"),)}


def test_a_volume_that_was_kept_for_a_claim_of_the_same_name_is_not_the_new_ones() -> None:
    """It holds the data of the claim that is gone."""
    stored: list[Stored] = [claim("one", uid="new"), LOCAL, volume(claim="default/one", claim_uid="old")]
    made = cluster(stored, one_of("one"))
    assert not made.cycle().bindings
    made.cache.storage.set_volume(volume(claim="default/one", claim_uid="new"))
    assert chosen(made.cycle()) == {"one-w-0": (("default/one", "v"),)}


@pytest.mark.parametrize(("where", "nodes"), [(None, {"a-0", "b-0"}), (inside("zone", "a"), {"a-0"})])
def test_pods_that_share_a_claim_share_its_volume(where: tuple[SelectorTerm, ...] | None, nodes: set[str]) -> None:
    cpu = 3 if where is None else 2
    stored: list[Stored] = [claim(), LOCAL, volume(required=where), volume("w", required=inside("zone", "b"), size=20)]
    made = cluster(stored, gang("g", 2, cpu, scheduling=uses("data")))
    outcome = made.cycle()
    assert set(bindings(outcome).values()) == nodes
    assert set(chosen(outcome).values()) == {(("default/data", "v"),)}
    audit(made.cache)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("bfdsn"), st.integers(0, 3)), max_size=25))
def test_no_volume_is_ever_promised_twice(steps: list[tuple[str, int]]) -> None:
    """Claims are bound, bindings fail, pods come and go and are evicted, in any order."""
    stored: list[Stored] = [claim(f"j{each}") for each in range(4)]
    made = cluster([*stored, *SHARED, volume("x", required=inside("zone", "a"))])
    owners: dict[str, str] = {}
    for action, index in steps:
        name, key = f"j{index}", f"default/j{index}"
        task = made.cache.tasks.get(f"uid-{name}-w-0")
        match action:
            case "n":
                made.add(one_of(name, 2))
            case "d":
                made.delete(f"{name}-w-0")
            case "f":
                made.cache.bind_failed(f"uid-{name}-w-0")
            case "b" if key in owners:
                made.cache.storage.set_claim(claim(name, volume=owners[key]))
                made.cache.storage.set_volume(volume(owners[key], claim=key))
            case "s" if task is not None and task.assumed:
                made.change_pod(f"{name}-w-0", node=task.node, status=TaskStatus.RUNNING)
        audit(made.cache)
        owners = {each: its for each, its in owners.items() if _is_promised(made, each)}
        for binding in made.cycle().bindings:
            for late, name_of_volume in binding.volumes:
                assert all(each == late for each, its in owners.items() if its == name_of_volume)
                owners[late] = name_of_volume
        audit(made.cache)


def _is_promised(made: Cluster, key: str) -> bool:
    return made.cache.storage.promises.of(key) is not None or not made.cache.storage.is_late(key)


def test_a_binding_names_the_claims_that_wait_for_it_and_the_volumes_they_get() -> None:
    stored: list[Stored] = [
        claim(),
        claim("scratch", storage_class="local"),
        claim("old", volume="o"),
        volume("o", claim="default/old"),
        LATE,
    ]
    stored += [replace(LOCAL, name="local"), volume("small", storage_class="local", size=20)]
    stored += [volume("large", storage_class="local", size=30)]
    made = cluster(stored, gang("g", 1, scheduling=uses("data", "old", "scratch")))
    assert made.cycle().bindings[0].volumes == (("default/data", ""), ("default/scratch", "small"))


@pytest.mark.parametrize(
    ("limit", "attached", "fits"),
    [(1, 0, True), (1, 1, False), (2, 1, True), (None, 5, True)],
)
def test_a_node_takes_so_many_volumes_of_a_driver(limit: int | None, attached: int, *, fits: bool) -> None:
    stored: list[Stored] = [claim(volume="v"), volume(driver="csi.example", handle="v", required=inside("zone", "a"))]
    others = []
    for index in range(attached):
        stored += [
            claim(f"c{index}", volume=f"v{index}"),
            volume(f"v{index}", driver="csi.example", handle=f"v{index}"),
        ]
        others.append(pod(f"x-{index}", node="a-0", ours=False, cpu=0.1, scheduling=uses(f"c{index}")))
    if limit is not None:
        stored.append(CsiNodeSpec("a-0", {"csi.example": limit}))
    outcome = cluster(stored, *others, gang("g", 1, scheduling=uses("data"))).cycle()
    assert bool(outcome.bindings) is fits
    if not fits:
        assert reason(outcome) == {TOO_MANY: 1, CONFLICT: 1}


def test_a_volume_that_is_attached_already_counts_once() -> None:
    stored: list[Stored] = [
        claim(volume="v"),
        volume(driver="d", handle="v", required=inside("zone", "a")),
        CsiNodeSpec("a-0", {"d": 1}),
    ]
    other = pod("x", node="a-0", ours=False, cpu=0.1, scheduling=uses("data"))
    assert bindings(cluster(stored, other, gang("g", 1, scheduling=uses("data"))).cycle()) == {"g-w-0": "a-0"}


def test_where_nobody_tells_of_storage_claims_are_passed_over() -> None:
    assert bindings(Cluster.of(zone_nodes("a"), gang("g", 1, scheduling=uses("data"))).cycle())


@pytest.mark.parametrize(
    ("rule", "stored"),
    [
        ("VolumeBinding", []),
        ("VolumeBinding", [claim(volume="v"), volume(required=inside("zone", "c"))]),
        ("NodeVolumeLimits", [claim(volume="v"), volume(driver="d"), *(CsiNodeSpec(f"{z}-0", {"d": 0}) for z in "ab")]),
    ],
)
def test_each_rule_can_be_switched_off(rule: str, stored: list[Stored]) -> None:
    made = cluster(stored, gang("g", 1, scheduling=uses("data")))
    assert not made.cycle().bindings
    plugin = {"name": "predicates", "arguments": {f"predicate.{rule}Enable": False}}
    made.configuration = load_configuration({"actions": "allocate", "tiers": [{"plugins": [plugin]}]})
    assert made.cycle().bindings
