"""The rules for a RayCluster, in the order in which problems are told."""

from __future__ import annotations

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.ray import labels, names
from muster.ray.validation import (
    authentication,
    autoscaling,
    fault_tolerance,
    groups,
    head,
    ingress,
    metadata,
    pods,
    unsupported,
)
from muster.ray.validation.view import ClusterRule, ClusterView

CLUSTER_RULES: tuple[ClusterRule, ...] = (
    pods.template_types,
    pods.containers,
    pods.finalizers,
    pods.container_quantities,
    pods.autoscaler_quantities,
    pods.credential_quantities,
    pods.group_quantities,
    groups.amounts_once,
    groups.labels_once,
    groups.group_labels,
    groups.replicas,
    groups.hosts,
    groups.size,
    groups.group_names,
    head.service_type,
    head.user_service,
    head.upgrade_strategy,
    head.serve_service,
    ingress.ingress_options,
    autoscaling.suspended_groups,
    autoscaling.group_idle_timeout,
    autoscaling.group_priority,
    autoscaling.version_by_environment,
    autoscaling.restart_policy,
    autoscaling.container_name,
    autoscaling.autoscaler_options,
    authentication.token_authentication,
    fault_tolerance.annotation,
    fault_tolerance.redis,
    fault_tolerance.redis_options,
    unsupported.cluster_features,
)
_HEAD_POD_RULES = (
    pods.template_types,
    pods.containers,
    pods.container_quantities,
    pods.group_quantities,
    pods.credential_quantities,
)


def validate_ray_cluster(cluster: RayCluster) -> list[FieldProblem]:
    """Everything that is wrong with the cluster; paths start with `metadata` or `spec`."""
    view = _view(cluster)
    return [
        *metadata.name(cluster.metadata, names.MAX_RAY_CLUSTER_NAME),
        *metadata.placement_labels(cluster.metadata),
        *cluster_spec_problems(view),
    ]


def head_pod_problems(cluster: RayCluster) -> list[FieldProblem]:
    """What keeps a head's pod, or one like it, from being worked out at all."""
    view = _view(cluster)
    problems = (problem for rule in _HEAD_POD_RULES for problem in rule(view))
    parts = (f"{view.head.path}.", f"{view.path}.gcsFaultToleranceOptions.")
    return [problem for problem in problems if problem.path.startswith(parts)]


def _view(cluster: RayCluster) -> ClusterView:
    origin = cluster.metadata.labels.get(labels.ORIGINATED_FROM_KIND)
    return ClusterView.of(
        cluster.spec,
        path="spec",
        cluster_name=cluster.metadata.name,
        annotations=cluster.metadata.annotations,
        originated_from=origin,
        ray_job=cluster.metadata.labels.get(labels.ORIGINATED_FROM_NAME) if origin == RayJob.definition.kind else None,
    )


def cluster_spec_problems(view: ClusterView) -> list[FieldProblem]:
    """Everything that is wrong with a cluster's spec, wherever it stands."""
    return [problem for rule in CLUSTER_RULES for problem in rule(view)]
