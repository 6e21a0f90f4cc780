from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.engine.amounts import TranslationError
from muster.engine.budget_specs import disruption_budget_spec
from muster.kube.policy_objects import PodDisruptionBudget
from muster.scheduler.selectors import LabelSelector, Operator, Requirement
from muster.scheduler.specs import PodDisruptionBudgetSpec


def budget(spec: dict[str, Any], status: dict[str, Any] | None = None) -> PodDisruptionBudget:
    manifest = {"metadata": {"name": "b", "namespace": "ns"}, "spec": spec, "status": status or {}}
    return msgspec.convert(manifest, type=PodDisruptionBudget)


def test_a_budget_says_how_many_of_which_pods_may_be_disrupted() -> None:
    given = budget(
        {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        {"disruptionsAllowed": 1, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
    )
    selector = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
    assert disruption_budget_spec(given) == PodDisruptionBudgetSpec("ns", "b", selector, 1, frozenset({"p"}))


@pytest.mark.parametrize(("spec", "selector"), [({}, None), ({"selector": {}}, LabelSelector())])
def test_no_selector_and_an_empty_one_differ(spec: dict[str, Any], selector: LabelSelector | None) -> None:
    assert disruption_budget_spec(budget(spec)).selector == selector


def test_what_is_no_operator_is_named() -> None:
    odd = {"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
    with pytest.raises(TranslationError, match=r"spec\.selector\.matchExpressions\[0\]\.operator"):
        disruption_budget_spec(budget(odd))
