"""Whether a run has ended as it should, read from the API and the dashboards, not from what was seen on the way."""

from __future__ import annotations

from bench.controllers.manifests import PODS_EACH
from bench.controllers.ray_heads import Counts
from bench.controllers.scenario import RayObject, Scenario
from muster.kube.client import ApiClient
from muster.kube.objects import Pod
from muster.kube.resource import PODS


async def faults_of(
    client: ApiClient, scenario: Scenario, namespace: str, count: int, dashboards: Counts | None
) -> list[str]:
    """What is wrong where `count` objects of the scenario should be there, each with its pods and at most one job."""
    objects = await client.list(scenario.resource, namespace, decode=RayObject)
    pods = await client.list(PODS, namespace, decode=Pod)
    there, running = sum(map(scenario.is_there, objects)), sum(map(_runs, pods))
    faults = []
    if there != count:
        faults.append(f"in the end {there} of {count} are there")
    if not len(pods) == running == count * PODS_EACH:
        faults.append(f"{len(pods)} pods, {running} of them running; {count * PODS_EACH} should run")
    if dashboards is not None and dashboards.taken != count:
        faults.append(f"{dashboards.taken} jobs were submitted; {count} should have been")
    return faults


def _runs(pod: Pod) -> bool:
    return bool(pod.spec.node_name) and pod.status.phase == "Running"
