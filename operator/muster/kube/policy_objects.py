# ruff: noqa: RUF012 - msgspec copies an empty default for each object; ruff knows its structs only by a base in the file
"""What limits namespaces and disruptions, as far as it is read (see `muster.kube.objects`)."""

from __future__ import annotations

from typing import Any

from muster.kube.object_base import Part
from muster.kube.objects import ApiObject, LabelSelector, Quantities


class ResourceQuotaSpec(Part, frozen=True):
    """The limits of a namespace; with scopes they hold for some of its pods only."""

    hard: Quantities | None = None
    scopes: list[str] | None = None
    scope_selector: dict[str, Any] | None = None


class ResourceQuotaStatus(Part, frozen=True):
    """The limits that are enforced, and what counts against them."""

    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(ApiObject, frozen=True):
    """A ResourceQuota."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PodDisruptionBudgetSpec(Part, frozen=True):
    """Which pods a budget is about."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Part, frozen=True):
    """How many of them may be disrupted now; `disrupted_pods` are on their way out and counted already."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(ApiObject, frozen=True):
    """A PodDisruptionBudget of policy/v1."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
