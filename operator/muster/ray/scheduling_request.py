"""What a pod really asks the scheduler for, as Kubernetes counts it.

All containers run together, init containers one after the other before them, and init containers that restart always
(sidecars) stay. So a pod needs the larger of the two times; what it requests as a whole (KEP-2837) takes the place of
that sum; and the overhead of its runtime class comes on top. A resource without a request counts with its limit, as the
API server fills it in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from muster.quantities import units

Amounts = Counter[str]
"""Resource name -> amount in the resource's unit (see `muster.quantities`)."""


def scheduling_request(
    pod_spec: Mapping[str, Any],
    *,
    more_containers: Iterable[Mapping[str, Any]] = (),
    more_init_containers: Iterable[Mapping[str, Any]] = (),
) -> Amounts:
    """The request of a pod with this spec and the containers that the operator adds to it. Raises QuantityError."""
    sidecars: Amounts = Counter()
    peak: Amounts = Counter()
    for container in [*(pod_spec.get("initContainers") or []), *more_init_containers]:
        wanted = container_request(container)
        if container.get("restartPolicy") == "Always":
            sidecars += wanted
            peak |= sidecars
        else:
            peak |= sidecars + wanted
    running = sum((container_request(c) for c in [*(pod_spec.get("containers") or []), *more_containers]), sidecars)
    needed = Counter({**(peak | running), **container_request(pod_spec)})
    return needed + _amounts(pod_spec.get("overhead") or {})


def container_request(container: Mapping[str, Any]) -> Amounts:
    """The `resources` of a container or of a whole pod: requests, and limits where a resource has no request.

    Raises QuantityError.
    """
    resources = container.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(quantities: Mapping[str, Any]) -> Amounts:
    return Counter({name: units(quantity, name) for name, quantity in quantities.items()})
