"""Affinity to pods, topology spread, host ports and images, from the wire."""

from __future__ import annotations

from typing import Any

import pytest

from muster.engine.amounts import TranslationError
from muster.engine.pod_specs import task_spec
from muster.scheduler.company import AffinityTerm, Company, HostPort, PreferredAffinity, SpreadConstraint
from muster.scheduler.constraints import PodConstraints
from muster.scheduler.selectors import LabelSelector, Operator, PodSelector, Requirement
from tests.engine.pod_manifests import pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LABELS = {"app": "web", "version": "7"}
APP = Requirement("app", Operator.IN, ("web",))


def constraints(**spec: Any) -> PodConstraints:
    found = task_spec(pod(labels=LABELS, **spec), scheduler_names=("muster",), gate="g")
    assert found is not None
    assert found.labels == LABELS
    return found.scheduling


def company(**spec: Any) -> Company:
    found = constraints(**spec).company
    assert found is not None
    return found


def selector(*requirements: Requirement) -> LabelSelector:
    return LabelSelector(requirements)


TERMS: dict[str, tuple[dict[str, Any], PodSelector]] = {
    "own namespace": (
        {"labelSelector": {"matchLabels": {"app": "web"}}},
        PodSelector(selector(APP), ("default",)),
    ),
    "named namespaces": (
        {"labelSelector": {}, "namespaces": ["b", "a"]},
        PodSelector(selector(), ("a", "b")),
    ),
    "all namespaces": (
        {"labelSelector": {}, "namespaceSelector": {}},
        PodSelector(selector(), (), selector()),
    ),
    "no selector": ({}, PodSelector(None, ("default",))),
    "expressions": (
        {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}},
        PodSelector(selector(Requirement("app", Operator.NOT_IN, ("x",))), ("default",)),
    ),
    "keys of its own labels": (
        {
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["version", "absent"],
        },
        PodSelector(selector(APP, Requirement("version", Operator.IN, ("7",))), ("default",)),
    ),
    "keys that must differ": (
        {"labelSelector": {}, "mismatchLabelKeys": ["version"]},
        PodSelector(selector(Requirement("version", Operator.NOT_IN, ("7",))), ("default",)),
    ),
    "merged by the API server already": (
        {
            "labelSelector": {"matchExpressions": [{"key": "version", "operator": "In", "values": ["7"]}]},
            "matchLabelKeys": ["version"],
        },
        PodSelector(selector(Requirement("version", Operator.IN, ("7",))), ("default",)),
    ),
}


@pytest.mark.parametrize("case", TERMS)
def test_a_term_says_which_pods_it_means(case: str) -> None:
    wire, pods = TERMS[case]
    term = {"topologyKey": "zone", **wire}
    near = company(affinity={"podAffinity": {REQUIRED: [term]}})
    far = company(affinity={"podAntiAffinity": {REQUIRED: [term]}})
    assert near == Company(affinity=(AffinityTerm(pods, "zone"),))
    assert far == Company(anti_affinity=(AffinityTerm(pods, "zone"),))


def test_wishes_have_weights_and_those_of_anti_affinity_count_against() -> None:
    wish = {"weight": 5, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}
    found = company(affinity={"podAffinity": {PREFERRED: [wish]}, "podAntiAffinity": {PREFERRED: [wish]}})
    term = AffinityTerm(PodSelector(selector(), ("default",)), "zone")
    assert found.preferred == (PreferredAffinity(5, term), PreferredAffinity(-5, term))


def test_spread_constraints_have_kubernetes_defaults() -> None:
    plain = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    full = {
        **plain,
        "whenUnsatisfiable": "ScheduleAnyway",
        "minDomains": 3,
        "nodeAffinityPolicy": "Ignore",
        "nodeTaintsPolicy": "Honor",
        "matchLabelKeys": ["version"],
    }
    own = Requirement("version", Operator.IN, ("7",))
    assert company(topologySpreadConstraints=[plain, full]).spread == (
        SpreadConstraint(PodSelector(selector(), ("default",)), "zone", 2),
        SpreadConstraint(
            PodSelector(selector(own), ("default",)),
            "zone",
            2,
            hard=False,
            min_domains=3,
            honor_affinity=False,
            honor_taints=True,
        ),
    )


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", **fields}


PORTS: dict[str, tuple[dict[str, Any], set[HostPort]]] = {
    "only ports of the host count": (
        {"containers": [container(ports=[{"containerPort": 1}, {"containerPort": 2, "hostPort": 22}])]},
        {HostPort(22)},
    ),
    "protocol and address": (
        {
            "containers": [
                container(ports=[{"containerPort": 2, "hostPort": 22, "protocol": "UDP", "hostIP": "10.0.0.1"}])
            ]
        },
        {HostPort(22, "UDP", "10.0.0.1")},
    ),
    "on the host's network all count": (
        {"hostNetwork": True, "containers": [container(ports=[{"containerPort": 8265}])]},
        {HostPort(8265)},
    ),
    "a sidecar's too, an init container's not": (
        {
            "containers": [container()],
            "initContainers": [
                container(ports=[{"containerPort": 1, "hostPort": 1}], restartPolicy="Always"),
                container(ports=[{"containerPort": 2, "hostPort": 2}]),
            ],
        },
        {HostPort(1)},
    ),
}


@pytest.mark.parametrize("case", PORTS)
def test_ports_of_the_host(case: str) -> None:
    spec, expected = PORTS[case]
    assert set(constraints(**spec).ports) == expected


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("ray", "ray:latest"),
        ("ray:2.9", "ray:2.9"),
        ("registry:5000/ray", "registry:5000/ray:latest"),
        ("registry:5000/ray:2.9", "registry:5000/ray:2.9"),
    ],
)
def test_images_are_named_as_nodes_name_them(image: str, name: str) -> None:
    assert constraints(containers=[container(image=image), container(image=image)]).images == (name, name)


BAD: dict[str, dict[str, Any]] = {
    "spec.affinity.podAffinity." + REQUIRED + "[0].labelSelector.matchExpressions[0].operator": {
        "affinity": {
            "podAffinity": {
                REQUIRED: [
                    {
                        "topologyKey": "zone",
                        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
                    }
                ]
            }
        }
    },
    "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator": {
        "topologySpreadConstraints": [
            {
                "topologyKey": "zone",
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]},
            }
        ]
    },
}


@pytest.mark.parametrize("path", BAD)
def test_an_unknown_operator_is_named(path: str) -> None:
    with pytest.raises(TranslationError) as caught:
        constraints(**BAD[path])
    assert caught.value.path == path
