"""PodDisruptionBudgets to the scheduler's own."""

from __future__ import annotations

from muster.engine.pod_company import label_selector
from muster.kube.policy_objects import PodDisruptionBudget
from muster.scheduler.specs import PodDisruptionBudgetSpec


def disruption_budget_spec(budget: PodDisruptionBudget) -> PodDisruptionBudgetSpec:
    """Translate a PodDisruptionBudget. One without a selector is about no pod. Raises TranslationError."""
    return PodDisruptionBudgetSpec(
        namespace=budget.metadata.namespace or "",
        name=budget.metadata.name,
        selector=label_selector(budget.spec.selector, "spec.selector", ()),
        allowed=budget.status.disruptions_allowed,
        disrupted=frozenset(budget.status.disrupted_pods),
    )
