"""The Secret with the token of a cluster: made once, before any pod.

It is looked up afresh each time, for Muster does not watch Secrets: it may get one by its name and make one, and no
more. A Secret that is gone is made again, with another token, as soon as no head runs with the old one. Before that
workers with the new token could not join, so nothing is made, and the status says what to do. Workers that still have
the old token lose their head then, end, and are started again by their kubelets with the new one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from muster.api.raycluster import RayCluster
from muster.controllers.children import NotOurs, controlled_by
from muster.controllers.context import Context
from muster.kube.errors import NotFound
from muster.kube.objects import Pod
from muster.kube.resource import SECRETS
from muster.kube.secret_objects import Secret
from muster.ray.authentication import SECRET_KEY, TOKEN_BYTES, token_secret, token_secret_name, users_secret
from muster.ray.pod_health import is_head, is_running, ray_container


async def ensure_token(context: Context, cluster: RayCluster, pods: Iterable[Pod]) -> str | None:
    """Make the Secret of the cluster's token if it is missing; say why the pods can't have a token, None if they can.

    Raises NotOurs where a Secret of the wanted name is somebody else's.
    """
    name = token_secret_name(cluster)
    if name is None:
        return None
    found = await _read(context, cluster.metadata.namespace, name)
    if users_secret(cluster) is not None:
        return _complaint_about(found, name)
    if found is None:
        if any(_runs_as_head(pod) for pod in pods):
            return (
                f"Secret {name} with the cluster's token is gone while the head runs with that token: "
                "put the Secret back, or delete the head pod, and a new token is made"
            )
        await context.client.create(SECRETS, cluster.metadata.namespace, token_secret(cluster, _random()))
        return None
    if not controlled_by(found.metadata, cluster.metadata.uid):
        raise NotOurs(SECRETS, found.metadata, cluster)
    if (fault := found.fault(SECRET_KEY)) is not None:
        lost = f"Secret {name} has lost its token: its key {SECRET_KEY} {fault.value}"
        return f"{lost}; delete the Secret, and another one is made"
    return None


async def _read(context: Context, namespace: str, name: str) -> Secret | None:
    try:
        return await context.client.get(SECRETS, namespace, name, decode=Secret)
    except NotFound:
        return None


def _complaint_about(found: Secret | None, name: str) -> str | None:
    if found is None:
        return f'spec.authOptions.secretName: Secret "{name}" does not exist; create it, with the key {SECRET_KEY}'
    if (fault := found.fault(SECRET_KEY)) is not None:
        missing = f'Secret "{name}" has no token under the key {SECRET_KEY}, which {fault.value}'
        return f"spec.authOptions.secretName: {missing}; put one there, a line of printable ASCII"
    return None


def _runs_as_head(pod: Pod) -> bool:
    """Whether the pod is a head whose Ray container has started, so that it has a token in its environment."""
    container = ray_container(pod)
    return is_head(pod) and is_running(pod) and (container is None or container.state.waiting is None)


def _random() -> bytes:
    return secrets.token_bytes(TOKEN_BYTES)
