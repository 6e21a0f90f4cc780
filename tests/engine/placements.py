"""What pods may ask of their places and what they may not: (part of a spec, the field at fault)."""

from __future__ import annotations

from typing import Any

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def near(**term: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}}


def liking(kind: str, weight: int) -> dict[str, Any]:
    term = {"weight": weight, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}
    return {"affinity": {kind: {PREFERRED: [term]}}}


def nodes(**term: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def liking_nodes(weight: int, **term: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": weight, "preference": term}]}}}


def spread(**fields: Any) -> dict[str, Any]:
    plain = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    return {"topologySpreadConstraints": [{**plain, **fields}]}


def line(operator: str, *values: str, key: str = "k") -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def selector(operator: str, *values: str, key: str = "k") -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": [line(operator, *values, key=key)]}}


def tolerating(**fields: Any) -> dict[str, Any]:
    return {"tolerations": [fields]}


def port(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": [{"containerPort": 80, **fields}]}]}


TERM = f"affinity.podAffinity.{REQUIRED}[0]"
NODE_TERM = f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
SPREAD = "topologySpreadConstraints[0]"
REFUSED: list[tuple[dict[str, Any], str]] = [
    *[(liking("podAffinity", weight), f"affinity.podAffinity.{PREFERRED}[0].weight") for weight in (0, -1, 101)],
    *[
        (liking("podAntiAffinity", weight), f"affinity.podAntiAffinity.{PREFERRED}[0].weight")
        for weight in (0, -1, 101)
    ],
    *[(liking_nodes(weight), f"affinity.nodeAffinity.{PREFERRED}[0].weight") for weight in (0, -7, 101)],
    (
        liking_nodes(1, matchExpressions=[line("In")]),
        f"affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].values",
    ),
    (near(topologyKey=""), f"{TERM}.topologyKey"),
    (near(topologyKey="a zone"), f"{TERM}.topologyKey"),
    (near(**selector("In")), f"{TERM}.labelSelector.matchExpressions[0].values"),
    (near(**selector("NotIn")), f"{TERM}.labelSelector.matchExpressions[0].values"),
    (near(**selector("Exists", "v")), f"{TERM}.labelSelector.matchExpressions[0].values"),
    (near(**selector("In", "v w")), f"{TERM}.labelSelector.matchExpressions[0].values"),
    (near(**selector("Gt", "1")), f"{TERM}.labelSelector.matchExpressions[0].operator"),
    (near(**selector("Near", "1")), f"{TERM}.labelSelector.matchExpressions[0].operator"),
    (near(**selector("Exists", key="")), f"{TERM}.labelSelector.matchExpressions[0].key"),
    (near(labelSelector={"matchLabels": {"k": "-"}}), f"{TERM}.labelSelector.matchLabels[k]"),
    (near(labelSelector={"matchLabels": {"a/b/c": "v"}}), f"{TERM}.labelSelector.matchLabels"),
    (
        near(labelSelector={}, namespaceSelector={"matchExpressions": [line("In")]}),
        f"{TERM}.namespaceSelector.matchExpressions[0].values",
    ),
    (
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}},
        f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
    ),
    (nodes(matchExpressions=[line("In")]), f"{NODE_TERM}.matchExpressions[0].values"),
    (nodes(matchExpressions=[line("DoesNotExist", "v")]), f"{NODE_TERM}.matchExpressions[0].values"),
    (nodes(matchExpressions=[line("Gt")]), f"{NODE_TERM}.matchExpressions[0].values"),
    (nodes(matchExpressions=[line("Lt", "1", "2")]), f"{NODE_TERM}.matchExpressions[0].values"),
    (nodes(matchExpressions=[line("in", "v")]), f"{NODE_TERM}.matchExpressions[0].operator"),
    (nodes(matchExpressions=[line("In", "v", key="-k")]), f"{NODE_TERM}.matchExpressions[0].key"),
    (nodes(matchFields=[line("Exists", key="metadata.name")]), f"{NODE_TERM}.matchFields[0].operator"),
    (nodes(matchFields=[line("In", "a", "b", key="metadata.name")]), f"{NODE_TERM}.matchFields[0].values"),
    ({"nodeSelector": {"a b": "v"}}, "nodeSelector"),
    ({"nodeSelector": {"k": "v" * 64}}, "nodeSelector[k]"),
    (spread(maxSkew=0), f"{SPREAD}.maxSkew"),
    (spread(maxSkew=-5), f"{SPREAD}.maxSkew"),
    (spread(minDomains=0), f"{SPREAD}.minDomains"),
    (spread(minDomains=-1), f"{SPREAD}.minDomains"),
    (spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"), f"{SPREAD}.minDomains"),
    (spread(whenUnsatisfiable="Never"), f"{SPREAD}.whenUnsatisfiable"),
    (spread(topologyKey=""), f"{SPREAD}.topologyKey"),
    (spread(nodeAffinityPolicy="honor"), f"{SPREAD}.nodeAffinityPolicy"),
    (spread(nodeTaintsPolicy="Never"), f"{SPREAD}.nodeTaintsPolicy"),
    (spread(**selector("In")), f"{SPREAD}.labelSelector.matchExpressions[0].values"),
    (
        {"topologySpreadConstraints": spread()["topologySpreadConstraints"] * 2},
        "topologySpreadConstraints[1]",
    ),
    (tolerating(key="", operator="Equal", value="v"), "tolerations[0].operator"),
    (tolerating(key="k", operator="Exists", value="v"), "tolerations[0].value"),
    (tolerating(key="k", operator="Gt", value="v"), "tolerations[0].value"),
    (tolerating(key="k", operator="Like"), "tolerations[0].operator"),
    (tolerating(key="k", value="v w"), "tolerations[0].value"),
    (tolerating(key="k k", operator="Exists"), "tolerations[0].key"),
    (tolerating(key="k", operator="Exists", effect="Never"), "tolerations[0].effect"),
    (port(hostPort=65536), "containers[0].ports[0].hostPort"),
    (port(hostPort=-1), "containers[0].ports[0].hostPort"),
    (port(containerPort=0), "containers[0].ports[0].containerPort"),
    (port(protocol="tcp"), "containers[0].ports[0].protocol"),
]


ALLOWED: list[dict[str, Any]] = [
    {},
    liking("podAffinity", 1),
    liking("podAntiAffinity", 100),
    liking_nodes(100, matchExpressions=[line("Gt", "3")]),
    near(),
    near(labelSelector={}, namespaceSelector={}),
    near(**selector("NotIn", "v", "")),
    near(labelSelector={"matchLabels": {"app.kubernetes.io/name": "a.b-C_9"}}),
    nodes(matchFields=[line("In", "n-0", key="metadata.name")]),
    nodes(matchExpressions=[line("DoesNotExist", key="node.kubernetes.io/gpu")]),
    nodes(),
    spread(minDomains=1, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor"),
    {
        "topologySpreadConstraints": [
            *spread()["topologySpreadConstraints"],
            *spread(whenUnsatisfiable="ScheduleAnyway")["topologySpreadConstraints"],
        ]
    },
    tolerating(operator="Exists"),
    tolerating(key="k", value="", effect="NoExecute"),
    tolerating(key="k", operator="Lt", value="-3"),
    port(hostPort=65535, protocol="SCTP"),
]
