"""Where a pod may run, from the wire to the scheduler's values. Raises TranslationError for an unknown operator."""

from __future__ import annotations

from muster.engine.amounts import TranslationError
from muster.kube import objects
from muster.scheduler.constraints import (
    NODE_NAME_FIELD,
    UNCONSTRAINED,
    Operator,
    PodConstraints,
    PreferredTerm,
    Requirement,
    SelectorTerm,
    Toleration,
)

_AFFINITY = "affinity.nodeAffinity"


def pod_constraints(spec: objects.PodSpec, path: str = "spec", *, revocable: bool = False) -> PodConstraints:
    """Translate node selector, node affinity and tolerations; `path` is where the pod's spec stands."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if not (spec.node_selector or spec.tolerations or affinity or revocable):
        return UNCONSTRAINED
    return PodConstraints(
        node_selector=tuple(sorted(spec.node_selector.items())),
        required=_required(affinity, f"{path}.{_AFFINITY}"),
        preferred=_preferred(affinity, f"{path}.{_AFFINITY}"),
        tolerations=tuple(_toleration(each) for each in spec.tolerations),
        revocable=revocable,
    )


def _required(affinity: objects.NodeAffinity | None, path: str) -> tuple[SelectorTerm, ...] | None:
    if affinity is None or affinity.required is None:
        return None
    path = f"{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    terms = affinity.required.node_selector_terms
    return tuple(_term(term, f"{path}[{index}]") for index, term in enumerate(terms))


def _preferred(affinity: objects.NodeAffinity | None, path: str) -> tuple[PreferredTerm, ...]:
    if affinity is None:
        return ()
    path = f"{path}.preferredDuringSchedulingIgnoredDuringExecution"
    return tuple(
        PreferredTerm(each.weight, _term(each.preference, f"{path}[{index}].preference"))
        for index, each in enumerate(affinity.preferred)
    )


def _term(term: objects.NodeSelectorTerm, path: str) -> SelectorTerm:
    for index, each in enumerate(term.match_fields):
        if each.key != NODE_NAME_FIELD:
            raise TranslationError(f"{path}.matchFields[{index}].key", f"{each.key!r} is not {NODE_NAME_FIELD}")
    return SelectorTerm(
        labels=_requirements(term.match_expressions, f"{path}.matchExpressions"),
        fields=_requirements(term.match_fields, f"{path}.matchFields"),
    )


def _requirements(found: list[objects.SelectorRequirement], path: str) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(each.key, _operator(each.operator, f"{path}[{index}].operator"), tuple(each.values))
        for index, each in enumerate(found)
    )


def _operator(word: str, path: str) -> Operator:
    try:
        return Operator(word)
    except ValueError:
        raise TranslationError(path, f"{word!r} is not a node selector operator") from None


def _toleration(found: objects.Toleration) -> Toleration:
    return Toleration(found.key or "", found.operator or "Equal", found.value or "", found.effect or "")
