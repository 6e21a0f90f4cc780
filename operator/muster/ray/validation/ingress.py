"""The Ingress of the dashboard: what the API server would say of an object that the user never wrote."""

from __future__ import annotations

from muster.api.errors import FieldProblem
from muster.ray.validation.metadata import is_subdomain
from muster.ray.validation.view import ClusterView, Problems


def ingress_options(view: ClusterView) -> Problems:
    """A host is a DNS name, a path begins at the root."""
    head = view.spec.head_group_spec
    options = head.ingress_options
    if options is None or not head.enable_ingress:
        return
    path = f"{view.head.path}.ingressOptions"
    if options.host and not is_subdomain(options.host.removeprefix("*.")):
        text = f'"{options.host}" is no DNS name; use lower case letters, digits, "-" and "."'
        yield FieldProblem(f"{path}.host", text)
    if options.path and not options.path.startswith("/"):
        yield FieldProblem(f"{path}.path", f'must begin with "/", got "{options.path}"')
