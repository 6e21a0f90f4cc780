"""Groups of pods: how many, what they are called, what they tell Ray."""

from __future__ import annotations

import re
from collections.abc import Mapping

from muster.api.errors import FieldProblem
from muster.api.raycluster import WorkerGroupSpec
from muster.ray import labels, names
from muster.ray.validation.metadata import is_subdomain
from muster.ray.validation.view import ClusterView, Problems, Template

_RAY_AMOUNTS = ("num-cpus", "num-gpus", "memory", "resources")
_RESERVED = (labels.HEAD_GROUP, labels.SUBMITTER_GROUP)
MOST_PODS = 100_000
"""Of one cluster. Kubernetes is made for 150,000 in all, Ray for some thousands of nodes; more is a slip of the pen."""
_MOST_GROUPS = 1000
_NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def replicas(view: ClusterView) -> Problems:
    """0 <= minReplicas <= maxReplicas. `replicas` itself is moved into that range, as KubeRay does."""
    for path, group in view.worker_groups():
        if group.minimum < 0:
            yield FieldProblem(f"{path}.minReplicas", f"must not be negative, got {group.minimum}")
        if group.maximum < 0:
            yield FieldProblem(f"{path}.maxReplicas", f"must not be negative, got {group.maximum}")
        elif group.minimum > group.maximum:
            text = f"{group.minimum} is more than maxReplicas, {group.maximum}; lower it or raise maxReplicas"
            yield FieldProblem(f"{path}.minReplicas", text)


def hosts(view: ClusterView) -> Problems:
    """A replica has at least one pod."""
    for path, group in view.worker_groups():
        if group.num_of_hosts is not None and group.num_of_hosts < 1:
            yield FieldProblem(f"{path}.numOfHosts", f"must be at least 1, got {group.num_of_hosts}")


def size(view: ClusterView) -> Problems:
    """No more groups and pods than there can be."""
    if len(view.workers) > _MOST_GROUPS:
        text = f"has {len(view.workers)} groups, at most {_MOST_GROUPS} can be handled; merge those of one shape"
        yield FieldProblem(f"{view.path}.workerGroupSpecs", text)
    pods = 1
    for path, group in view.worker_groups():
        pods += group.desired_pods
        if group.desired_pods > MOST_PODS:
            yield FieldProblem(f"{path}.{_largest_factor(group)}", f"{_asks_for(group.desired_pods)}; lower it")
            return
    if pods > MOST_PODS:
        text = f"{_asks_for(pods)}, the head and all groups together; lower replicas"
        yield FieldProblem(f"{view.path}.workerGroupSpecs", text)


def _largest_factor(group: WorkerGroupSpec) -> str:
    """The field that makes a group so large."""
    if group.hosts > group.desired_replicas:
        return "numOfHosts"
    return "minReplicas" if group.minimum > (group.replicas or 0) else "replicas"


def _asks_for(pods: int) -> str:
    return f"asks for {pods} pods, at most {MOST_PODS} can form a cluster"


def group_names(view: ClusterView) -> Problems:
    """No two groups have one name, no group has one that the gang uses itself, and pods can be named after each."""
    first: dict[str, int] = {}
    for index, (path, group) in enumerate(view.worker_groups()):
        name = group.group_name
        if name in first:
            text = f'"{name}" is the name of workerGroupSpecs[{first[name]}] already; give each group its own'
            yield FieldProblem(f"{path}.groupName", text)
        elif name in _RESERVED:
            yield FieldProblem(f"{path}.groupName", f'"{name}" is reserved; choose another name')
        elif not _names_pods(name, view.cluster_name):
            text = f'pods can\'t be named after "{name}"; use up to 63 letters, digits and "-", a letter or digit last'
            yield FieldProblem(f"{path}.groupName", text)
        first.setdefault(name, index)


def _names_pods(group: str, cluster: str) -> bool:
    """Whether pods can have the group's name in their own, and as a label."""
    pod = f"{names.worker_pod_prefix(cluster, group)}xxxxx"
    return _NAME_PART.fullmatch(group) is not None and is_subdomain(pod)


def amounts_once(view: ClusterView) -> Problems:
    """What a group tells Ray stands in `resources` or in rayStartParams, not in both."""
    for group in view.groups:
        params = group.spec.ray_start_params or {}
        twice = [name for name in _RAY_AMOUNTS if params.get(name)]
        if group.spec.resources and twice:
            text = f"can't be combined with rayStartParams {', '.join(twice)}; keep one of the two"
            yield FieldProblem(f"{group.path}.resources", text)


def labels_once(view: ClusterView) -> Problems:
    """Ray's node labels stand in `labels`, never in rayStartParams."""
    for group in view.groups:
        if "labels" in (group.spec.ray_start_params or {}):
            path = f"{group.path}.rayStartParams[labels]"
            yield FieldProblem(path, "is not allowed; write the labels into the group's `labels`")


def group_labels(view: ClusterView) -> Problems:
    """A group's labels become labels of its pods, and so do those of its template."""
    for group in view.groups:
        yield from label_map(group.spec.labels or {}, f"{group.path}.labels")
        yield from template_labels(group.template)


def template_labels(template: Template) -> Problems:
    """The labels of one template; nothing when it could not be read."""
    metadata = template.parsed.metadata
    yield from label_map((metadata.labels if metadata else None) or {}, f"{template.path}.metadata.labels")


def label_map(pairs: Mapping[str, str], path: str) -> Problems:
    """Keys and values are what the API server takes for labels."""
    for key, value in pairs.items():
        if not is_qualified_name(key):
            yield FieldProblem(f"{path}[{key}]", "is no valid label key; write name or prefix.example.com/name")
        if value and not _NAME_PART.fullmatch(value):
            text = f'"{value}" is no valid label value; use up to 63 letters, digits, "-", "_" and "."'
            yield FieldProblem(f"{path}[{key}]", text)


def is_qualified_name(text: str) -> bool:
    """Whether this is `name` or `prefix.example.com/name`, as the keys of labels and annotations are."""
    prefix, slash, name = text.rpartition("/")
    return _NAME_PART.fullmatch(name) is not None and (not slash or is_subdomain(prefix))
