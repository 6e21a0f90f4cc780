"""What is asked about, out of a running cluster, with the rights of who asks.

Nodes and pods of all namespaces are needed to ask the scheduler. Who may not read them, or asks while no scheduler
runs, is told what stands on the PodGroup.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from muster.engine.configuration_source import parse_configuration
from muster.engine.notes import stated_time
from muster.explain.answer import explain
from muster.explain.kubelet_events import with_warnings
from muster.explain.refused_pods import find_refusal, with_refusal
from muster.explain.stored import stored_answer
from muster.explain.target import Kind, RayState, Target, TargetError, group_of, state_of
from muster.kube.client import ApiClient
from muster.kube.errors import ApiError, Forbidden, NotFound
from muster.kube.lease import Lease
from muster.kube.objects import ApiObject, Pod
from muster.kube.resource import LEASES, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS, Resource
from muster.scheduler.conf import DEFAULT, ConfigurationError, SchedulerConfiguration
from muster.scheduler.reasons import Code
from muster.simulator.collecting import Collection as Collected
from muster.simulator.collecting import collect
from muster.simulator.command_line import DEFAULT_NAMES
from muster.simulator.input_error import Place
from muster.simulator.manifests import Found, Manifests
from muster.simulator.model import Model, build_model
from muster.simulator.outside import left_unasked
from muster.simulator.simulation import Pace, Simulation
from muster.simulator.snapshot import RayObject

LEASE: Final = "muster-scheduler"
_EXTENDERS: Final = (Code.EXTENDER_REFUSED.value, Code.EXTENDER_UNAVAILABLE.value)
_PATIENCE: Final = 2.0
"""A Lease is believed for so many times its duration: it may just be changing hands."""
_RAY: Final[dict[Kind, Resource]] = {Kind.RAY_JOB: RAYJOBS, Kind.RAY_CLUSTER: RAYCLUSTERS}


async def explain_cluster(
    client: ApiClient,
    target: Target,
    now: float,
    *,
    namespace: str,
    deployment: str,
    configuration: SchedulerConfiguration | None,
    scheduler_names: Collection[str],
) -> dict[str, Any]:
    """The answer of the scheduler as it was started; where `scheduler_names` are empty, for the pods that are its own.

    Raises TargetError where there is no such thing, ApiError where the cluster can't be asked.
    """
    ray = await _ray(client, target)
    stopped = await _stopped(client, namespace, now)
    if stopped is not None:
        return await _stored(client, target, ray, now, stopped)
    try:
        found = await collect(client, namespace=namespace, deployment=deployment)
    except Forbidden as error:
        return await _stored(client, target, ray, now, f"the cluster can't be read: {error.message}")
    chosen = found.command_line.lay_over(configuration or _configuration(found))
    model = _model(found, scheduler_names or found.command_line.scheduler_names or DEFAULT_NAMES)
    clusters = [state_of(each) for each in found.objects.get(RAYCLUSTERS, ())]
    mine = [each for each in clusters if each.metadata.namespace == target.namespace]
    answer = explain(Simulation(model, chosen, Pace(now)), target, ray, mine)
    if "notReady" in answer:
        answer["notReady"] = await with_warnings(client, answer["notReady"], model.pods.values(), now)
    unasked = left_unasked(chosen)
    if unasked and (told := await _told_from_outside(client, target, ray, now, answer)) is not None:
        return told
    left_out = found.left_out + model.left_out + unasked
    problem = _problem_of(answer["podGroup"], model, left_out)
    if problem is not None:
        # What a PodGroup that can't be used waits for was told by the scheduler, on the PodGroup.
        return await _stored(client, target, ray, now, f"the scheduler can't use {problem}")
    return {**answer, "leftOut": left_out} if left_out else answer


async def _told_from_outside(
    client: ApiClient, target: Target, ray: RayState | None, now: float, answer: dict[str, Any]
) -> dict[str, Any] | None:
    """What the scheduler wrote of a gang that waits for an extender's word, which nobody else knows."""
    if answer.get("phase") is None:
        return None
    told = await _stored(client, target, ray, now, "what the extender says is known to the scheduler only")
    reason = told.get("reason")
    waits_for_it = reason is not None and reason.get("code") in _EXTENDERS
    return told if waits_for_it or (reason is not None and "wouldBind" in answer) else None


def _problem_of(key: str, model: Model, left_out: list[str]) -> str | None:
    job, name = model.cache.jobs.get(key), f"PodGroup {key}:"
    if job is not None and job.spec is not None and job.spec.problem:
        return f"{name} {job.spec.problem}"
    return next((text for text in left_out if text.startswith(name)), None)


def _configuration(found: Collected) -> SchedulerConfiguration:
    if found.configuration is None:
        return DEFAULT
    try:
        return parse_configuration(found.configuration, "the scheduler's configuration")
    except ConfigurationError as error:
        found.left_out.append(f"the scheduler's configuration: {error}")
        return DEFAULT


def _model(found: Collected, scheduler_names: Collection[str]) -> Model:
    """A model of what can be used; what can't is left out, as in the scheduler itself."""
    objects: dict[Resource, list[Found[ApiObject]]] = {each: [] for each in Manifests().objects}
    for resource, some in found.objects.items():
        if resource in objects:
            objects[resource] = [Found(Place(f"{resource.kind} {each.key}", observed=True), each) for each in some]
    return build_model(Manifests(objects), scheduler_names)


async def _stopped(client: ApiClient, namespace: str, now: float) -> str | None:
    """Why no scheduler is at work; None when one is, or when that can't be told."""
    try:
        lease = await client.get(LEASES, namespace, LEASE, decode=Lease)
    except ApiError:
        return None
    renewed = stated_time(lease.spec.renew_time)
    if renewed is None or now <= renewed + _PATIENCE * (lease.spec.lease_duration_seconds or 15):
        return None
    return f"no scheduler is running: Lease {namespace}/{LEASE} was last renewed {int(now - renewed)} s ago"


async def _ray(client: ApiClient, target: Target) -> RayState | None:
    resource = _RAY.get(target.kind)
    if resource is None:
        return None
    try:
        return state_of(await client.get(resource, target.namespace, target.name, decode=RayObject))
    except NotFound:
        raise TargetError(f"{target} does not exist") from None


async def _stored(client: ApiClient, target: Target, ray: RayState | None, now: float, note: str) -> dict[str, Any]:
    pods: list[Pod] = []
    if target.kind is Kind.POD:
        try:
            pods = [await client.get(PODS, target.namespace, target.name, decode=Pod)]
        except NotFound:
            raise TargetError(f"{target} does not exist") from None
    namespace, _, name = group_of(target, pods, ray).partition("/")
    try:
        group = await client.get(PODGROUPS, namespace, name)
    except NotFound:
        raise TargetError(f"{target} has no PodGroup {namespace}/{name}, and {note}") from None
    answer = stored_answer(target, group, now, note)
    if "reason" in answer:
        clusters = await _clusters(client, namespace)
        answer["reason"] = with_refusal(answer["reason"], find_refusal(answer["podGroup"], clusters, pods, ray))
    return answer


async def _clusters(client: ApiClient, namespace: str) -> list[RayState]:
    try:
        return [state_of(each) for each in await client.list(RAYCLUSTERS, namespace, decode=RayObject)]
    except ApiError:  # what the scheduler wrote has to do
        return []
