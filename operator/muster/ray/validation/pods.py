"""Pod templates: their types, their containers, their quantities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.errors import FieldProblem
from muster.api.podtemplate import ResourceRequirements
from muster.quantities import QuantityError, is_costly, parse_quantity
from muster.ray.validation import costly_amounts
from muster.ray.validation.costly_amounts import costly_amount
from muster.ray.validation.groups import is_qualified_name
from muster.ray.validation.view import ClusterView, Problems, Template

_ONE_OF = frozenset({"foregroundDeletion", "orphan"})
_STANDARD_FINALIZERS = _ONE_OF | {"kubernetes"}


def template_types(view: ClusterView) -> Problems:
    """What Muster reads in a template has the right types."""
    for group in view.groups:
        yield from group.template.problems


def containers(view: ClusterView) -> Problems:
    """Every group has a container to run Ray in."""
    for group in view.groups:
        if group.template.sound and not group.template.parsed.containers:
            yield FieldProblem(
                f"{group.template.path}.spec.containers", "must have at least one container: the first one runs Ray"
            )


def container_quantities(view: ClusterView) -> Problems:
    """Requests, limits and overhead are quantities that a pod may have."""
    for group in view.groups:
        yield from template_quantities(group.template)


def finalizers(view: ClusterView) -> Problems:
    """Those of the pods."""
    for group in view.groups:
        yield from template_finalizers(group.template)


def template_finalizers(template: Template) -> Problems:
    """The finalizers of a template are its pods', and only there does the API server look at them."""
    metadata = template.parsed.metadata
    path = f"{template.path}.metadata.finalizers"
    written = (metadata.finalizers if metadata else None) or []
    for index, finalizer in enumerate(written):
        if finalizer not in _STANDARD_FINALIZERS and not ("/" in finalizer and is_qualified_name(finalizer)):
            text = f'"{finalizer}" can\'t be a finalizer of a pod; write example.com/name'
            yield FieldProblem(f"{path}[{index}]", text)
    if _ONE_OF.issubset(written):
        yield FieldProblem(path, f"can't have both {' and '.join(sorted(_ONE_OF))}; keep one of the two")


def autoscaler_quantities(view: ClusterView) -> Problems:
    """So are those of the autoscaler's container."""
    options = view.spec.autoscaler_options
    resources = (options.resources if options else None) or {}
    for kind in ("requests", "limits"):
        path = f"{view.path}.autoscalerOptions.resources.{kind}"
        amounts = resources.get(kind) or {}
        if isinstance(amounts, Mapping):
            yield from quantities(amounts, path)
        else:
            yield FieldProblem(path, "must be a mapping of resource names to quantities")
    env = {"env": options.env if options else None}
    yield from costly_amounts.in_container(env, f"{view.path}.autoscalerOptions")


def credential_quantities(view: ClusterView) -> Problems:
    """So are those that the Redis credentials refer to: they become variables of the head's."""
    options = view.spec.gcs_fault_tolerance_options
    if options is None:
        return
    for field, credential in (("redisUsername", options.redis_username), ("redisPassword", options.redis_password)):
        path = f"{view.path}.gcsFaultToleranceOptions.{field}.valueFrom"
        yield from costly_amounts.in_env_source((credential.value_from if credential else None) or {}, path)


def group_quantities(view: ClusterView) -> Problems:
    """The amounts that a group tells Ray are quantities too."""
    for group in view.groups:
        yield from quantities(group.spec.resources or {}, f"{group.path}.resources")


def template_quantities(template: Template) -> Problems:
    """The quantities of one template."""
    costly = costly_amounts.in_template(template.written, template.path)
    yield from dict.fromkeys([*_requested(template), *costly])


def _requested(template: Template) -> Problems:
    """What its pods ask for; nothing when it could not be read."""
    for kind, listed in (
        ("initContainers", template.parsed.init_containers),
        ("containers", template.parsed.containers),
    ):
        for index, container in enumerate(listed):
            yield from _of_resources(container.resources, f"{template.path}.spec.{kind}[{index}].resources")
    spec = template.parsed.spec
    if spec is not None:
        yield from _of_resources(spec.resources, f"{template.path}.spec.resources")
        yield from quantities(spec.overhead or {}, f"{template.path}.spec.overhead")


def _of_resources(resources: ResourceRequirements | None, path: str) -> Problems:
    if resources is None:
        return
    requests, limits = resources.requests or {}, resources.limits or {}
    yield from quantities(requests, f"{path}.requests")
    yield from quantities(limits, f"{path}.limits")
    yield from _requests_above_limits(requests, limits, f"{path}.requests")


def quantities(amounts: Mapping[str, Any], path: str) -> Problems:
    """Each amount can be read, by the API server too, and is not negative."""
    for resource, amount in amounts.items():
        if is_costly(amount):
            yield from costly_amount(amount, f"{path}[{resource}]")
            continue
        try:
            negative = parse_quantity(amount) < 0
        except QuantityError:
            text = f'"{amount}" is not a quantity; write a number with an optional unit, such as 2, 500m or 1.5Gi'
            yield FieldProblem(f"{path}[{resource}]", text)
        else:
            if negative:
                yield FieldProblem(f"{path}[{resource}]", f"must not be negative, got {amount}")


def _requests_above_limits(requests: Mapping[str, Any], limits: Mapping[str, Any], path: str) -> Problems:
    for resource in requests.keys() & limits.keys():
        if is_costly(requests[resource]) or is_costly(limits[resource]):
            continue
        try:
            above = parse_quantity(requests[resource]) > parse_quantity(limits[resource])
        except QuantityError:
            continue
        if above:
            text = f"asks for {requests[resource]}, more than the limit of {limits[resource]}; raise the limit"
            yield FieldProblem(f"{path}[{resource}]", text)
