"""How the head is reached, and who upgrades its cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.api.errors import FieldProblem, MalformedResource
from muster.api.service import Service
from muster.ray import labels, names
from muster.ray.serve_service import is_serve_port, wants_serve_service
from muster.ray.validation.view import ClusterView, Problems

_SERVICE_TYPES = ("", "ClusterIP", "NodePort", "LoadBalancer")


def service_type(view: ClusterView) -> Problems:
    """The head service has a type that a service with pods behind it can have."""
    yield from _type_problems(view.spec.head_group_spec.service_type, f"{view.head.path}.serviceType")


def user_service(view: ClusterView) -> Problems:
    """A head service that the user wrote has the right types and a possible name, and leads to the head pod alone.

    Muster makes it with rights that the user may not have, so it takes no traffic of others and leads to nobody else.
    """
    written = view.spec.head_group_spec.head_service
    if written is None:
        return
    path = f"{view.head.path}.headService"
    try:
        service = Service.parse(written)
    except MalformedResource as refusal:
        for problem in refusal.problems:
            yield FieldProblem(f"{path}.{problem.path}", problem.message)
        return
    name = service.metadata.name if service.metadata else ""
    if name:
        yield from _name_problems(name, f"{path}.metadata.name", dict(_other_services(view)))
    if service.spec is None:
        return
    yield from _type_problems(service.spec.type, f"{path}.spec.type")
    for field, value in (("externalName", service.spec.external_name), ("externalIPs", service.spec.external_ips)):
        if value:
            yield FieldProblem(f"{path}.spec.{field}", "is not allowed: the service leads to the head pod; remove it")


def _name_problems(name: str, path: str, others: Mapping[str, str]) -> Problems:
    if not names.is_dns_1035_label(name):
        text = f'"{name}" can\'t name a Service; use up to 63 lower case letters, digits and "-", a letter first'
        yield FieldProblem(path, text)
    if name in others:  # of two services of one name only the first would be made
        yield FieldProblem(path, f'"{name}" is the name of {others[name]}; choose another')


def _other_services(view: ClusterView) -> Iterator[tuple[str, str]]:
    """The names that Muster gives to services beside the head's, each with what the service is."""
    if any(group.hosts > 1 for _, group in view.worker_groups()):
        yield names.headless_service(view.cluster_name), "the service that numOfHosts above 1 adds"
    if wants_serve_service(view.annotations):
        what = f"the service that the annotation {labels.ENABLE_SERVE_SERVICE} adds"
        yield names.serve_service(view.cluster_name), what
    if view.ray_job:
        yield names.ray_job_head_service(view.ray_job), "the service that the RayJob itself has"


def _type_problems(kind: str | None, path: str) -> Problems:
    if kind is not None and kind not in _SERVICE_TYPES:
        yield FieldProblem(path, f'must be ClusterIP, NodePort or LoadBalancer, not "{kind}"')


def upgrade_strategy(view: ClusterView) -> Problems:
    """A cluster that a RayJob or RayService made is upgraded by its maker."""
    if view.originated_from in ("RayJob", "RayService") and view.spec.upgrade_strategy is not None:
        text = f"is not allowed in a cluster of a {view.originated_from}; remove it"
        yield FieldProblem(f"{view.path}.upgradeStrategy", text)


def serve_service(view: ClusterView) -> Problems:
    """A service in front of Ray Serve has a port to lead to."""
    template = view.head.template
    if not wants_serve_service(view.annotations) or not template.parsed.containers:
        return
    ports = template.parsed.containers[0].ports
    if ports and not any(is_serve_port(port.name or "") for port in ports):
        text = "needs a port named serve: declare it in the head's Ray container, or declare no ports there at all"
        yield FieldProblem(f"metadata.annotations[{labels.ENABLE_SERVE_SERVICE}]", text)
