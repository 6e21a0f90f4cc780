"""Sees to it that a cluster's autoscaler may do its work: service account, role and binding, before there is a head.

A role or binding of ours that somebody has changed is put right. What belongs to others is left alone: a head that ran
as somebody else's service account, or by somebody else's role, would have rights that nobody gave to it.
"""

from __future__ import annotations

import msgspec

from muster.api.raycluster import RayCluster
from muster.controllers.children import NotOurs
from muster.controllers.context import Context
from muster.controllers.raycluster.offspring import ensure
from muster.kube.access_objects import PolicyRule, RoleBinding, RoleReference, Subject
from muster.kube.objects import Pod
from muster.ray.autoscaler import CONTAINER, restarted_workers
from muster.ray.autoscaler_access import role, role_binding, service_account, users_service_account
from muster.ray.pod_health import is_head, is_terminating


class AccountMissing(Exception):  # noqa: N818 - a state of affairs
    """The service account that the head's template names does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"spec.headGroupSpec.template.spec.serviceAccountName: ServiceAccount {name} does not exist, and the "
            "autoscaler would run as it; create it, or leave the field out to have one made"
        )


class RoleOfAnother(Exception):  # noqa: N818 - a state of affairs
    """A binding of the cluster's own leads to a role that is not; that can't be changed, and to delete bindings is
    nothing that Muster may do.
    """

    def __init__(self, binding: RoleBinding) -> None:
        reference = binding.role_ref
        super().__init__(
            f"RoleBinding {binding.metadata.name} leads to {reference.kind} {reference.name}, not to the Role that the "
            "cluster's autoscaler needs; delete it, and it is made anew"
        )


async def ensure_autoscaler_access(context: Context, cluster: RayCluster) -> None:
    """Create what is missing, correct what has been changed. Raises NotOurs, AccountMissing and RoleOfAnother."""
    if not cluster.spec.autoscaling:
        return
    _tell_of_restarts(context, cluster)
    await _ensure_account(context, cluster)
    await _ensure_role(context, cluster)
    await _ensure_binding(context, cluster)


async def _ensure_account(context: Context, cluster: RayCluster) -> None:
    named = users_service_account(cluster)
    if named is None:
        try:
            await ensure(context, cluster, context.service_accounts, service_account(cluster))
        except NotOurs as conflict:
            conflict.advise(
                "name it in spec.headGroupSpec.template.spec.serviceAccountName if the head is to run as it"
            )
            raise
    # It is not watched, being somebody else's; once there is a head the question is settled.
    elif not _accounts_of_autoscalers(context, cluster) and not await _exists(context, cluster, named):
        raise AccountMissing(named)


async def _exists(context: Context, cluster: RayCluster, account: str) -> bool:
    return await context.service_accounts.read(cluster.metadata.namespace, account) is not None


async def _ensure_role(context: Context, cluster: RayCluster) -> None:
    manifest = role(cluster)
    found = await ensure(context, cluster, context.roles, manifest)
    if found.rules != msgspec.convert(manifest["rules"], list[PolicyRule]):
        await context.roles.patch(found, {"rules": manifest["rules"]})


async def _ensure_binding(context: Context, cluster: RayCluster) -> None:
    manifest = role_binding(cluster, _accounts_of_autoscalers(context, cluster))
    found = await ensure(context, cluster, context.role_bindings, manifest)
    if found.role_ref != msgspec.convert(manifest["roleRef"], RoleReference):
        raise RoleOfAnother(found)
    if found.subjects != msgspec.convert(manifest["subjects"], list[Subject]):
        await context.role_bindings.patch(found, {"subjects": manifest["subjects"]})


def _accounts_of_autoscalers(context: Context, cluster: RayCluster) -> list[str]:
    """The service accounts of the autoscalers that run: a template that names another changes nothing about them."""
    return [pod.spec.service_account_name for pod in _heads(context, cluster) if pod.spec.service_account_name]


def _heads(context: Context, cluster: RayCluster) -> list[Pod]:
    """The heads with an autoscaler in them; one from before autoscaling was switched on has none."""
    heads = [pod for pod in context.pods_of(cluster) if is_head(pod) and not is_terminating(pod)]
    with_autoscaler = [pod for pod in heads if any(one.name == CONTAINER for one in pod.spec.containers)]
    if heads and not with_autoscaler:
        message = (
            f"Head pod {heads[0].metadata.name} was made before enableInTreeAutoscaling was set and has no autoscaler; "
            "nothing scales the workers until it is replaced: delete it when the cluster can do without"
        )
        context.say(cluster, "Warning", "AutoscalerNotRunning", message, "Reconcile")
    return with_autoscaler


def _tell_of_restarts(context: Context, cluster: RayCluster) -> None:
    groups = restarted_workers(cluster.spec)
    if groups:
        message = (
            f"autoscalerOptions.version v1 does not scale down workers that their kubelets have started again; set "
            f"restartPolicy: Never in the templates of the worker groups {', '.join(groups)}"
        )
        context.say(cluster, "Warning", "AutoscalerRestartPolicy", message, "Validate")
