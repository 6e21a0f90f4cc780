"""The RayCluster of a RayJob: made from its spec, owned by it, found again by the stored name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from muster.api.errors import MalformedResource
from muster.api.raycluster import RayCluster, RayClusterStatus
from muster.api.rayjob import SubmissionMode
from muster.controllers.children import controlled_by
from muster.controllers.context import ObservedRayCluster
from muster.controllers.dashboard import Dashboard
from muster.controllers.dashboard_questions import Question
from muster.controllers.per_version import written_version
from muster.controllers.rayjob.look import Look
from muster.kube.objects import Pod, controller_of
from muster.kube.resource import RAYCLUSTERS
from muster.ray import labels, names
from muster.ray.authentication import token_env
from muster.ray.cluster_conditions import HEAD_POD_READY, PROVISIONED
from muster.ray.copied_annotations import copied_annotations
from muster.ray.jobs_api import DashboardUnreachable, RayJobsClient
from muster.ray.owner import owner_reference
from muster.ray.pod_health import is_head, is_terminating
from muster.ray.selection import runs_elsewhere
from muster.ray.services import dashboard_port, head_ports
from muster.ray.sidecar import with_submitter
from muster.ray.submitter import submission
from muster.ray.template_hash import content_hash
from muster.ray.validation import validate_ray_cluster

T = TypeVar("T")

READY = "ready"
_ROOM: Final = 1024
"""Bytes of annotations for those that Muster adds to the job's."""


def manifest(look: Look, name: str) -> dict[str, Any]:
    """The RayCluster to create. Labels and annotations are the RayJob's, so that what selects one finds the other."""
    job, spec = look.job, _written(look)
    meta = job.metadata
    origin = {
        labels.ORIGINATED_FROM_NAME: meta.name,
        labels.ORIGINATED_FROM_KIND: job.definition.kind,
        labels.SUBMISSION_MODE: job.spec.mode,
    }
    annotations = copied_annotations(meta.annotations, without=(labels.LAST_APPLIED,), room=_ROOM)
    if job.spec.mode == SubmissionMode.SIDECAR:
        annotations[labels.DISABLE_PROVISIONED_HEAD_RESTART] = "true"
        spec = _with_submitter(look, name, spec)
    return {
        "apiVersion": RayCluster.definition.api_version,
        "kind": RayCluster.definition.kind,
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": {**meta.labels, **origin},
            "annotations": annotations,
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


def _written(look: Look) -> dict[str, Any]:
    """The spec as the job's user wrote it. Raises ValueError where there is none."""
    spec = look.job.spec.ray_cluster_spec
    if spec is None:
        raise ValueError("a RayJob without rayClusterSpec has no cluster of its own")
    return spec.dump()


def _with_submitter(look: Look, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with the submitter in the head pod."""
    options, metadata = look.context.options, {"name": name, "namespace": look.job.metadata.namespace}
    cluster = RayCluster.parse({"metadata": metadata, "spec": spec})
    return with_submitter(
        spec,
        look.job,
        str(look.status.job_id),
        image=options.submitter_image,
        image_pull_policy=options.submitter_image_pull_policy,
        dashboard_port=dashboard_port(head_ports(cluster)),
        token_env=token_env(cluster),
    )


def _made_from(look: Look) -> str:
    """A digest of what the user wrote. What Muster adds is no part of it: a newer Muster has another image."""
    if look.job.spec.mode != SubmissionMode.SIDECAR:
        return content_hash(_written(look))
    document = submission(look.job, str(look.status.job_id)).to_document()
    return content_hash({"spec": _written(look), "submission": document})


def planned(look: Look) -> RayCluster:
    """The job's own cluster as it is to be made."""
    return RayCluster.parse(manifest(look, str(look.status.ray_cluster_name)))


async def find(look: Look) -> ObservedRayCluster | None:
    """The cluster of this attempt as it is; None when there is none. The API server is asked before that is believed.

    Changes of one that the job only uses come to the job from now on; those of its own do anyhow.
    """
    name = look.status.ray_cluster_name
    if not name:
        return None
    clusters, namespace = look.context.ray_clusters, look.job.metadata.namespace
    if runs_elsewhere(look.job):
        look.context.job_interests.add(f"{namespace}/{look.job.metadata.name}", RAYCLUSTERS, f"{namespace}/{name}")
    return clusters.get(namespace, name) or await clusters.read(namespace, name)


async def ensure(look: Look) -> ObservedRayCluster:
    """The job's own cluster, created if it is missing. Raises NotOurs."""
    name = str(look.status.ray_cluster_name)
    wanted = manifest(look, name)
    wanted["metadata"]["annotations"][labels.SPEC_HASH] = _made_from(look)
    with look.telling("FailedToCreateRayCluster", f"create RayCluster {look.job.metadata.namespace}/{name}", "Create"):
        found, created = await look.context.ray_clusters.ensure(wanted, look.job)
    if created:
        look.say("Normal", "CreatedRayCluster", f"Created RayCluster {found.key}", "Create", change=found.metadata.uid)
    return found


async def update(look: Look, cluster: ObservedRayCluster) -> ObservedRayCluster:
    """Give the cluster the spec that the job has now. Raises Conflict when somebody has changed it meanwhile."""
    spec = manifest(look, cluster.metadata.name)["spec"]
    with look.telling("FailedToUpdateRayCluster", f"update RayCluster {cluster.key}", "Update"):
        updated = await look.context.ray_clusters.replace_spec(cluster, spec, {labels.SPEC_HASH: _made_from(look)})
    message = f"RayCluster {updated.key} has got the changed spec.rayClusterSpec"
    look.say("Normal", "UpdatedRayCluster", message, "Update", change=updated.metadata.resource_version)
    return updated


async def delete(look: Look, cluster: ObservedRayCluster) -> None:
    """Delete the cluster, which is the job's own, unless it is on its way out."""
    if cluster.metadata.deletion_timestamp is not None:
        return
    with look.telling("FailedToDeleteRayCluster", f"delete RayCluster {cluster.key}", "Delete"):
        deleted = await look.context.ray_clusters.delete(cluster, propagation="Background")
    if deleted:
        message = f"Deleted RayCluster {cluster.key}"
        look.say("Normal", "DeletedRayCluster", message, "Delete", change=cluster.metadata.uid)


def is_outdated(look: Look, cluster: ObservedRayCluster) -> bool:
    """Whether the cluster was made from another spec than the job has now. What users edit in the cluster is theirs."""
    made_from = cluster.metadata.annotations.get(labels.SPEC_HASH)
    if made_from is None or cluster.metadata.deletion_timestamp is not None:
        return False
    return made_from != _made_from(look)


def is_ready(look: Look, cluster: ObservedRayCluster) -> bool:
    """Whether jobs may be handed to the cluster: it is ready as its spec is now, and not on its way out.

    A cluster that others made may grow and shrink meanwhile: it was complete once, and its head is ready.
    """
    status, meta = readable_status(cluster), cluster.metadata
    if not is_the_jobs(look, cluster):
        conditions = {entry.get("type"): entry.get("status") for entry in status.get("conditions") or []}
        up = conditions.get(PROVISIONED) == "True" and conditions.get(HEAD_POD_READY) == "True"
        return meta.deletion_timestamp is None and (up or status.get("state") == READY)
    current = (status.get("observedGeneration") or 0) >= (meta.generation or 0)
    return status.get("state") == READY and current and meta.deletion_timestamp is None


def is_the_jobs(look: Look, cluster: ObservedRayCluster) -> bool:
    """Whether the cluster is the job's own, to be deleted with it."""
    return controlled_by(cluster.metadata, look.job.metadata.uid)


def is_others(look: Look, cluster: ObservedRayCluster) -> bool:
    """Whether the attempt runs on the cluster and others made it: it stays as it is, and the job is stopped in Ray.

    The spec may mean another cluster since the attempt began, so one that stands alone is believed by its name in the
    status, if that is none which the job gives to a cluster of its own. One that belongs to something else is not:
    users may write the status.
    """
    if is_the_jobs(look, cluster):
        return False
    alone = controller_of(cluster.metadata) is None
    own_name = names.is_generated(look.job.metadata.name, cluster.metadata.name)
    return runs_elsewhere(look.job) or (alone and not own_name)


def serves(look: Look, cluster: ObservedRayCluster) -> bool:
    """Whether the attempt runs on the cluster, the job's own or a selected one."""
    return is_the_jobs(look, cluster) or is_others(look, cluster)


def stays(look: Look, cluster: ObservedRayCluster) -> bool:
    """Whether the cluster is the attempt's and not on its way out; by its old name there may be another one."""
    return serves(look, cluster) and cluster.metadata.deletion_timestamp is None


def model(look: Look, cluster: ObservedRayCluster) -> RayCluster:
    """The cluster in full; one that was edited into what can't work is taken as it was made, for so its pods stay.
    What others made is taken as it is.

    Raises MalformedResource or ValueError when the job's own spec has become of no use as well.
    """
    meta = cluster.metadata
    metadata = {
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "labels": meta.labels,
        "annotations": meta.annotations,
    }
    if not is_the_jobs(look, cluster):
        return RayCluster.parse({"metadata": metadata, "spec": cluster.spec})
    try:
        found = RayCluster.parse({"metadata": metadata, "spec": cluster.spec})
    except MalformedResource:
        pass
    else:
        problems = look.context.job_cluster_problems
        if not problems.of(look.key, written_version(meta), partial(validate_ray_cluster, found)):
            return found
    return RayCluster.parse({"metadata": metadata, "spec": manifest(look, meta.name)["spec"]})


def readable_status(cluster: ObservedRayCluster) -> Mapping[str, Any]:
    """What the cluster says of itself, as it is stored; nothing where others have written what can't be read."""
    return cluster.status if status_copy(cluster) is not None else {}


def status_copy(cluster: ObservedRayCluster) -> RayClusterStatus | None:
    """What the cluster says of itself, for `status.rayClusterStatus`; None when it can't be read."""
    try:
        return RayClusterStatus.parse(cluster.status)
    except MalformedResource:
        return None


def dashboard(look: Look, cluster: RayCluster) -> Dashboard:
    """Where the cluster's dashboard is."""
    meta = cluster.metadata
    service = names.head_service(meta.name, cluster.spec.head_group_spec.head_service)
    head = _head_with_address(look, cluster)
    return Dashboard(
        meta.namespace,
        service,
        dashboard_port(head_ports(cluster)),
        head_ip=head.status.pod_ip if head is not None else None,
        head_pod=head.metadata.name if head is not None else None,
    )


async def ask(look: Look, cluster: RayCluster, question: Question[T]) -> T:
    """What the cluster's dashboard answers to a question that may be put twice; as with `asking` otherwise."""
    where = await _with_token(look, cluster)
    async with look.context.dashboard_turns.turn(look.job.metadata.namespace):
        return await look.context.dashboard_questions.ask(where, question)


@asynccontextmanager
async def asking(look: Look, cluster: RayCluster) -> AsyncIterator[RayJobsClient]:
    """A client of the cluster's dashboard, with its token where it asks for one. Raises DashboardUnreachable, also for
    one whose address, of what others wrote into pods and services, is none.

    However long the answers take, other jobs are looked at meanwhile; so nothing else belongs into the block.
    """
    where = await _with_token(look, cluster)
    try:
        client = look.context.dashboards.connect(where)
    except ValueError as error:
        raise DashboardUnreachable(str(error)) from None
    async with look.context.dashboard_turns.turn(look.job.metadata.namespace), client as ray:
        yield ray


async def _with_token(look: Look, cluster: RayCluster) -> Dashboard:
    return replace(dashboard(look, cluster), token=await look.context.tokens.of(cluster))


def live_head(look: Look, cluster: ObservedRayCluster) -> Pod | None:
    """The cluster's head pod, unless that has ended or is on its way out."""
    pods = look.context.pods.owned_by(look.job.metadata.namespace, cluster.metadata.uid)
    live = (pod for pod in pods if is_head(pod) and not is_terminating(pod))
    return next((pod for pod in live if pod.status.phase not in ("Failed", "Succeeded")), None)


def head_is_gone(look: Look, cluster: ObservedRayCluster) -> bool:
    """Whether the cluster has no head and will have none, at its owner's wish."""
    asked = cluster.metadata.annotations.get(labels.DISABLE_PROVISIONED_HEAD_RESTART) == "true"
    return asked and live_head(look, cluster) is None


def _head_with_address(look: Look, cluster: RayCluster) -> Pod | None:
    """The cluster's head pod, once it has an address; one that is on its way out counts while there is no other."""
    meta = cluster.metadata
    labelled = look.context.pods_labelled(meta.namespace, meta.name)
    heads = [pod for pod in labelled if is_head(pod) and controlled_by(pod.metadata, meta.uid)]
    return next((pod for pod in sorted(heads, key=is_terminating) if pod.status.pod_ip), None)
