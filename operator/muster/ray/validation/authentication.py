"""Token authentication: what it needs of Ray, and which of its settings go together."""

from __future__ import annotations

import re

from muster.api.errors import FieldProblem
from muster.api.raycluster_options import AuthOptions
from muster.api.rayjob import RayJob
from muster.ray.authentication import TOKEN
from muster.ray.validation.autoscaling import parse_version
from muster.ray.validation.view import ClusterView, Problems

_SINCE = (2, 52, 0)
_KUBERNETES_SINCE = (2, 55, 0)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 253


def token_authentication(view: ClusterView) -> Problems:
    """Ray is new enough; a token comes from one place."""
    options = view.spec.auth_options
    if options is None:
        return
    path = f"{view.path}.authOptions"
    if options.mode == TOKEN:
        yield from _ray_version(view, f"{path}.mode", "token", _SINCE)
    if options.enable_k8s_token_auth:
        yield from _kubernetes(view, options, path)
    name = options.secret_name
    if name and (len(name) > _LONGEST_NAME or not _SUBDOMAIN.fullmatch(name)):
        yield FieldProblem(f"{path}.secretName", f'"{name}" can\'t be the name of a Secret')


def no_kubernetes_tokens(job: RayJob) -> Problems:
    """A submitter, and Muster itself, have no ServiceAccount's token that a job's cluster would take."""
    spec = job.spec.ray_cluster_spec
    if spec is not None and spec.auth_options is not None and spec.auth_options.enable_k8s_token_auth:
        text = "is not possible in a RayJob; leave it out, a Secret with a token is made"
        yield FieldProblem("spec.rayClusterSpec.authOptions.enableK8sTokenAuth", text)


def _kubernetes(view: ClusterView, options: AuthOptions, path: str) -> Problems:
    field = f"{path}.enableK8sTokenAuth"
    if options.mode != TOKEN:
        yield FieldProblem(field, "needs mode token; set it too")
    else:
        yield from _ray_version(view, field, "enableK8sTokenAuth", _KUBERNETES_SINCE)
    if options.secret_name:
        yield FieldProblem(f"{path}.secretName", "is of no use with enableK8sTokenAuth; leave one of the two out")


def _ray_version(view: ClusterView, path: str, what: str, since: tuple[int, int, int]) -> Problems:
    version = parse_version(view.spec.ray_version or "")
    if version is None or version < since:
        written = f'"{view.spec.ray_version}"' if view.spec.ray_version else "not set"
        yield FieldProblem(path, f"{what} needs Ray {'.'.join(map(str, since))} or newer, but rayVersion is {written}")
