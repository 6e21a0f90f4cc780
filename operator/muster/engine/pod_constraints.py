"""Where a pod may run, from the wire to the scheduler's values. Raises TranslationError naming the field."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from muster.engine.amounts import TranslationError
from muster.engine.pod_company import operator, pod_company
from muster.engine.pod_requests import assumed_requests
from muster.kube import objects
from muster.scheduler.company import ANY_ADDRESS, HostPort
from muster.scheduler.constraints import (
    NODE_NAME_FIELD,
    UNCONSTRAINED,
    DeviceUse,
    PodConstraints,
    PreferredTerm,
    SelectorTerm,
    Toleration,
)
from muster.scheduler.selectors import Requirement

_AFFINITY = "affinity.nodeAffinity"


def pod_constraints(
    spec: objects.PodSpec,
    path: str = "spec",
    *,
    name: str = "",
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    revocable: bool = False,
    devices: DeviceUse | None = None,
) -> PodConstraints:
    """Translate all that decides where a pod of this name, namespace and labels may run, resources apart.

    `path` is where the pod's spec stands. `devices` is what the pod claims.
    """
    affinity = spec.affinity.node_affinity if spec.affinity else None
    company = pod_company(spec, path, namespace, labels or {})
    found = PodConstraints(
        node_selector=tuple(sorted(spec.node_selector.items())),
        required=_required(affinity, f"{path}.{_AFFINITY}"),
        preferred=_preferred(affinity, f"{path}.{_AFFINITY}"),
        tolerations=tuple(_toleration(each) for each in spec.tolerations),
        revocable=revocable,
        ports=tuple(sorted(set(_host_ports(spec)), key=repr)),
        company=company,
        images=tuple(sorted(_images(spec))),
        claims=tuple(sorted(f"{namespace}/{claim}" for claim in _claims(spec, name))),
        devices=devices,
        assumed=assumed_requests(spec, path),
    )
    return found if found != UNCONSTRAINED else UNCONSTRAINED


def _claims(spec: objects.PodSpec, name: str) -> set[str]:
    """The PersistentVolumeClaims of the pod; one of its own is named after the pod and the volume."""
    named = {each.persistent_volume_claim.claim_name for each in spec.volumes if each.persistent_volume_claim}
    return named | {f"{name}-{each.name}" for each in spec.volumes if each.ephemeral is not None}


def device_use(pod: objects.Pod, *, delegated: bool) -> DeviceUse | None:
    """The claims of a pod to devices; None when it has none."""
    if not pod.spec.resource_claims:
        return None
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    names, unmade = set[str](), []
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name is not None:
            names.add(claim.resource_claim_name)
        elif claim.name not in made:
            unmade.append(claim.name)
        elif (name := made[claim.name]) is not None:
            names.add(name)
    namespace = pod.metadata.namespace or ""
    return DeviceUse(tuple(sorted(f"{namespace}/{name}" for name in names)), tuple(unmade), delegated)


def _host_ports(spec: objects.PodSpec) -> Iterator[HostPort]:
    """The ports of containers and sidecars; on the host's network a container has all its ports there."""
    sidecars = [each for each in spec.init_containers if each.restart_policy == "Always"]
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                yield HostPort(number, port.protocol or "TCP", port.host_ip or ANY_ADDRESS)


def _images(spec: objects.PodSpec) -> Iterator[str]:
    """The images of all containers, as nodes name them: with a tag."""
    for container in (*spec.init_containers, *spec.containers):
        name = container.image
        if name:
            tagged = name.rfind(":") > name.rfind("/")
            yield sys.intern(name if tagged else f"{name}:latest")


def _required(affinity: objects.NodeAffinity | None, path: str) -> tuple[SelectorTerm, ...] | None:
    if affinity is None or affinity.required is None:
        return None
    path = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    terms = affinity.required.node_selector_terms
    return tuple(selector_term(term, f"{path}[{index}]") for index, term in enumerate(terms))


def _preferred(affinity: objects.NodeAffinity | None, path: str) -> tuple[PreferredTerm, ...]:
    if affinity is None:
        return ()
    path = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    return tuple(
        PreferredTerm(each.weight, selector_term(each.preference, f"{path}[{index}].preference"))
        for index, each in enumerate(affinity.preferred)
    )


def selector_term(term: objects.NodeSelectorTerm, path: str) -> SelectorTerm:
    """Translate a term that selects nodes."""
    for index, each in enumerate(term.match_fields):
        if each.key != NODE_NAME_FIELD:
            raise TranslationError(f"{path}.matchFields[{index}].key", f"{each.key!r} is not {NODE_NAME_FIELD}")
    return SelectorTerm(
        labels=_requirements(term.match_expressions, f"{path}.matchExpressions"),
        fields=_requirements(term.match_fields, f"{path}.matchFields"),
    )


def _requirements(found: list[objects.SelectorRequirement], path: str) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(each.key, operator(each.operator, f"{path}[{index}].operator"), tuple(each.values))
        for index, each in enumerate(found)
    )


def _toleration(found: objects.Toleration) -> Toleration:
    return Toleration(found.key or "", found.operator or "Equal", found.value or "", found.effect or "")
