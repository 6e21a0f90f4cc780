"""ResourceQuotas to the scheduler's own."""

from __future__ import annotations

from muster.engine.amounts import TranslationError
from muster.kube.objects import Quantities
from muster.kube.policy_objects import ResourceQuota
from muster.quantities import QuantityError, units
from muster.scheduler.specs import ResourceQuotaSpec

_COUNT_OF_PODS = "count/pods"


def resource_quota_spec(quota: ResourceQuota) -> ResourceQuotaSpec | None:
    """Translate a ResourceQuota; None for one with scopes, which holds for some pods only.

    Until the quota's controller has written a status what the spec says holds. Raises TranslationError.
    """
    if quota.spec.scopes or quota.spec.scope_selector:
        return None
    at_work = quota.status.hard is not None
    return ResourceQuotaSpec(
        namespace=quota.metadata.namespace or "",
        name=quota.metadata.name,
        hard=_amounts(quota.status.hard if at_work else quota.spec.hard, "status.hard" if at_work else "spec.hard"),
        used=_amounts(quota.status.used, "status.used"),
    )


def _amounts(quantities: Quantities | None, path: str) -> dict[str, int]:
    """Amounts by the quota's own names, each in the unit of the resource that it counts."""
    found = {}
    for name, quantity in (quantities or {}).items():
        resource = "pods" if name == _COUNT_OF_PODS else name.removeprefix("requests.")
        try:
            found[name] = units(quantity, resource)
        except QuantityError as error:
            raise TranslationError(f"{path}[{name}]", str(error)) from error
    return found
