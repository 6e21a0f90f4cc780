"""What the API server refuses of where a pod wants to run, for specs that it never saw.

A companion's spec stands in an annotation, a simulated pod in a file: nobody has judged those. Weights, skews,
selectors, tolerations and ports that no pod can have are refused here, by the rules of Kubernetes' validation of pods.
Pods that the API server shows are not judged again: an older one may have let more pass, and their room has to be
counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from muster.engine.amounts import TranslationError
from muster.kube import pod_objects as objects

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NAME: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PREFIX: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL_KEY: Final = re.compile(rf"((?=[^/]{{1,253}}/){_PREFIX}/)?{_NAME}")
_LABEL_VALUE: Final = re.compile(rf"({_NAME})?")
_WHOLE_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_HEAVIEST: Final = 100
_LARGEST_PORT: Final = 65535
_LARGEST_COUNT: Final = 2**31 - 1
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POLICIES: Final = ("Honor", "Ignore")
_DO_NOT_SCHEDULE: Final = "DoNotSchedule"


def check_placement(spec: objects.PodSpec, path: str) -> None:
    """Raise TranslationError for the first field of a pod's spec at `path` that the API server would refuse."""
    for key, value in spec.node_selector.items():
        _check_label(key, value, f"{path}.nodeSelector")
    if spec.affinity is not None:
        _check_affinity(spec.affinity, f"{path}.affinity")
    for index, toleration in enumerate(spec.tolerations):
        _check_toleration(toleration, f"{path}.tolerations[{index}]")
    _check_spread(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    for field, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            _check_ports(container.ports, f"{path}.{field}[{index}].ports")


# --- nodes ---


def _check_affinity(found: objects.Affinity, path: str) -> None:
    if found.node_affinity is not None:
        _check_node_affinity(found.node_affinity, f"{path}.nodeAffinity")
    for name, affinity in (("podAffinity", found.pod_affinity), ("podAntiAffinity", found.pod_anti_affinity)):
        if affinity is not None:
            _check_pod_affinity(affinity, f"{path}.{name}")


def _check_node_affinity(found: objects.NodeAffinity, path: str) -> None:
    if found.required is not None:
        terms, where = found.required.node_selector_terms, f"{path}.{_REQUIRED}.nodeSelectorTerms"
        _require(bool(terms), where, "must have at least one term")
        for index, term in enumerate(terms):
            _check_node_term(term, f"{where}[{index}]")
    for index, wish in enumerate(found.preferred):
        _check_weight(wish.weight, f"{path}.{_PREFERRED}[{index}]")
        _check_node_term(wish.preference, f"{path}.{_PREFERRED}[{index}].preference")


def _check_node_term(term: objects.NodeSelectorTerm, path: str) -> None:
    for index, each in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{index}]"
        _check_key(each.key, f"{where}.key")
        if each.operator in ("Gt", "Lt"):
            _require(len(each.values) == 1, f"{where}.values", f"must be one value for {each.operator}")
        else:
            _check_operator(each, where)
    for index, each in enumerate(term.match_fields):
        where = f"{path}.matchFields[{index}]"
        _require(each.operator in ("In", "NotIn"), f"{where}.operator", f"{each.operator!r} does not select by a field")
        _require(len(each.values) == 1, f"{where}.values", "must be one value")


def _check_toleration(found: objects.Toleration, path: str) -> None:
    operator, value = found.operator or "Equal", found.value or ""
    if found.key:
        _check_key(found.key, f"{path}.key")
    else:
        _require(operator == "Exists", f"{path}.operator", "must be Exists where there is no key")
    match operator:
        case "Equal":
            _require(_is_value(value), f"{path}.value", f"{value!r} is no label's value")
        case "Exists":
            _require(not value, f"{path}.value", "must be empty for Exists")
        case "Gt" | "Lt":
            _require(_WHOLE_NUMBER.fullmatch(value) is not None, f"{path}.value", f"{value!r} is no whole number")
        case _:
            raise TranslationError(f"{path}.operator", f"{operator!r} is not an operator of tolerations")
    _require(not found.effect or found.effect in EFFECTS, f"{path}.effect", f"{found.effect!r} is not an effect")


# --- other pods ---


def _check_pod_affinity(found: objects.PodAffinity, path: str) -> None:
    for index, term in enumerate(found.required):
        _check_pod_term(term, f"{path}.{_REQUIRED}[{index}]")
    for index, wish in enumerate(found.preferred):
        _check_weight(wish.weight, f"{path}.{_PREFERRED}[{index}]")
        _check_pod_term(wish.pod_affinity_term, f"{path}.{_PREFERRED}[{index}].podAffinityTerm")


def _check_pod_term(term: objects.PodAffinityTerm, path: str) -> None:
    _check_key(term.topology_key, f"{path}.topologyKey")
    _check_selector(term.label_selector, f"{path}.labelSelector")
    _check_selector(term.namespace_selector, f"{path}.namespaceSelector")


def _check_spread(found: Iterable[objects.TopologySpreadConstraint], path: str) -> None:
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(found):
        where, when = f"{path}[{index}]", each.when_unsatisfiable
        _require(1 <= each.max_skew <= _LARGEST_COUNT, f"{where}.maxSkew", f"{each.max_skew} is not at least 1")
        _check_key(each.topology_key, f"{where}.topologyKey")
        whens = (_DO_NOT_SCHEDULE, "ScheduleAnyway")
        _require(when in whens, f"{where}.whenUnsatisfiable", f"{when!r} is not one of {', '.join(whens)}")
        _require((each.topology_key, when) not in seen, where, f"a second one with {when} for {each.topology_key!r}")
        seen.add((each.topology_key, when))
        _check_min_domains(each, f"{where}.minDomains")
        for field, policy in (
            ("nodeAffinityPolicy", each.node_affinity_policy),
            ("nodeTaintsPolicy", each.node_taints_policy),
        ):
            _require(policy is None or policy in _POLICIES, f"{where}.{field}", f"{policy!r} is not a policy")
        _check_selector(each.label_selector, f"{where}.labelSelector")


def _check_min_domains(found: objects.TopologySpreadConstraint, path: str) -> None:
    if found.min_domains is None:
        return
    _require(1 <= found.min_domains <= _LARGEST_COUNT, path, f"{found.min_domains} is not at least 1")
    _require(found.when_unsatisfiable == _DO_NOT_SCHEDULE, path, f"goes with {_DO_NOT_SCHEDULE} only")


def _check_selector(found: objects.LabelSelector | None, path: str) -> None:
    if found is None:
        return
    _check_labels(found.match_labels, f"{path}.matchLabels")
    for index, each in enumerate(found.match_expressions):
        where = f"{path}.matchExpressions[{index}]"
        _check_key(each.key, f"{where}.key")
        _check_operator(each, where)
        for value in each.values:
            _require(_is_value(value), f"{where}.values", f"{value!r} is no label's value")


# --- what they have in common ---


def _check_labels(found: Mapping[str, str], path: str) -> None:
    for key, value in found.items():
        _check_label(key, value, path)


def _check_label(key: str, value: str, path: str) -> None:
    _check_key(key, path)
    _require(_is_value(value), f"{path}[{key}]", f"{value!r} is no label's value")


def _check_operator(found: objects.SelectorRequirement, path: str) -> None:
    """The four operators that nodes and pods are selected by alike."""
    if found.operator in ("In", "NotIn"):
        _require(bool(found.values), f"{path}.values", f"must not be empty for {found.operator}")
    elif found.operator in ("Exists", "DoesNotExist"):
        _require(not found.values, f"{path}.values", f"must be empty for {found.operator}")
    else:
        raise TranslationError(f"{path}.operator", f"{found.operator!r} is not an operator of this selector")


def _check_weight(weight: int, path: str) -> None:
    _require(1 <= weight <= _HEAVIEST, f"{path}.weight", f"{weight} is not from 1 to {_HEAVIEST}")


def _check_key(key: str, path: str) -> None:
    _require(_LABEL_KEY.fullmatch(key) is not None, path, f"{key!r} is no label's key")


def _is_value(text: str) -> bool:
    return _LABEL_VALUE.fullmatch(text) is not None


def _check_ports(found: Iterable[objects.ContainerPort], path: str) -> None:
    for index, port in enumerate(found):
        where, number = f"{path}[{index}]", port.container_port
        _require(1 <= number <= _LARGEST_PORT, f"{where}.containerPort", f"{number} is no port")
        host = port.host_port or 0
        _require(0 <= host <= _LARGEST_PORT, f"{where}.hostPort", f"{host} is no port")
        protocol = port.protocol or "TCP"
        _require(protocol in ("TCP", "UDP", "SCTP"), f"{where}.protocol", f"{protocol!r} is not a protocol")


def _require(met: bool, path: str, problem: str) -> None:
    if not met:
        raise TranslationError(path, problem)
