"""What a pod asks of other pods' places, from the wire to the scheduler's values.

Raises TranslationError for an unknown operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muster.engine.amounts import TranslationError
from muster.kube import pod_objects as objects
from muster.scheduler.company import AffinityTerm, Company, PreferredAffinity, SpreadConstraint
from muster.scheduler.selectors import LabelSelector, Operator, PodSelector, Requirement

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod_company(spec: objects.PodSpec, path: str, namespace: str, labels: Mapping[str, str]) -> Company | None:
    """Translate affinity to pods and topology spread of a pod of this namespace and labels; None when it asks none."""
    affinity = spec.affinity or objects.Affinity()
    near, far = affinity.pod_affinity or objects.PodAffinity(), affinity.pod_anti_affinity or objects.PodAffinity()
    reader = _Reader(namespace, labels)
    company = Company(
        affinity=reader.terms(near.required, f"{path}.affinity.podAffinity.{_REQUIRED}"),
        anti_affinity=reader.terms(far.required, f"{path}.affinity.podAntiAffinity.{_REQUIRED}"),
        preferred=(
            *reader.preferred(near.preferred, f"{path}.affinity.podAffinity.{_PREFERRED}", 1),
            *reader.preferred(far.preferred, f"{path}.affinity.podAntiAffinity.{_PREFERRED}", -1),
        ),
        spread=tuple(
            reader.spread(each, f"{path}.topologySpreadConstraints[{index}]")
            for index, each in enumerate(spec.topology_spread_constraints)
        ),
    )
    return company if company != Company() else None


class _Reader:
    """Reads terms as those of one pod: an absent namespace is its own, `matchLabelKeys` are its own labels."""

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self._namespace = namespace
        self._labels = labels

    def terms(self, found: list[objects.PodAffinityTerm], path: str) -> tuple[AffinityTerm, ...]:
        return tuple(self._term(each, f"{path}[{index}]") for index, each in enumerate(found))

    def preferred(
        self, found: list[objects.WeightedPodAffinityTerm], path: str, sign: int
    ) -> tuple[PreferredAffinity, ...]:
        return tuple(
            PreferredAffinity(
                sign * each.weight, self._term(each.pod_affinity_term, f"{path}[{index}].podAffinityTerm")
            )
            for index, each in enumerate(found)
        )

    def _term(self, term: objects.PodAffinityTerm, path: str) -> AffinityTerm:
        own = not term.namespaces and term.namespace_selector is None
        selector = label_selector(
            term.label_selector,
            f"{path}.labelSelector",
            (*self._keys(term.match_label_keys, Operator.IN), *self._keys(term.mismatch_label_keys, Operator.NOT_IN)),
        )
        namespaces = (self._namespace,) if own else tuple(sorted(term.namespaces))
        namespace_selector = label_selector(term.namespace_selector, f"{path}.namespaceSelector", ())
        return AffinityTerm(PodSelector(selector, namespaces, namespace_selector), term.topology_key)

    def spread(self, found: objects.TopologySpreadConstraint, path: str) -> SpreadConstraint:
        keys = self._keys(found.match_label_keys, Operator.IN)
        selector = label_selector(found.label_selector, f"{path}.labelSelector", tuple(keys))
        return SpreadConstraint(
            pods=PodSelector(selector, (self._namespace,)),
            topology_key=found.topology_key,
            max_skew=found.max_skew,
            hard=found.when_unsatisfiable != "ScheduleAnyway",
            min_domains=found.min_domains or 1,
            honor_affinity=found.node_affinity_policy != "Ignore",
            honor_taints=found.node_taints_policy == "Honor",
        )

    def _keys(self, keys: list[str], wanted: Operator) -> Iterable[Requirement]:
        """Keys that the pod itself does not have say nothing."""
        return [Requirement(key, wanted, (self._labels[key],)) for key in keys if key in self._labels]


def label_selector(
    found: objects.LabelSelector | None, path: str, more: tuple[Requirement, ...]
) -> LabelSelector | None:
    """Translate a selector of pods that stands at `path`, with requirements added; None (absent) stays None.

    Raises TranslationError.
    """
    if found is None:
        return None
    exact = [Requirement(key, Operator.IN, (value,)) for key, value in found.match_labels.items()]
    expressions = [
        Requirement(
            each.key, _pod_operator(each.operator, f"{path}.matchExpressions[{index}].operator"), tuple(each.values)
        )
        for index, each in enumerate(found.match_expressions)
    ]
    unique = dict.fromkeys((*exact, *expressions, *more))
    return LabelSelector(tuple(sorted(unique, key=repr)))


def operator(word: str, path: str) -> Operator:
    """A selector's operator. Raises TranslationError for another word."""
    try:
        return Operator(word)
    except ValueError:
        raise TranslationError(path, f"{word!r} is not a node selector operator") from None


def _pod_operator(word: str, path: str) -> Operator:
    found = operator(word, path)
    if found in (Operator.GT, Operator.LT):
        raise TranslationError(path, f"{word!r} does not select pods")
    return found
