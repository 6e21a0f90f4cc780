"""Two jobs of which only one fits: the second waits whole, says why, and runs when the first is done."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api, Manifest, wait_until
from tests.e2e.observer import Observer
from tests.e2e.rayjobs import wait_for_deployment_status, wait_for_refusal
from tests.e2e.target import Target
from tests.e2e.workloads import queue, ray_job

pytestmark = pytest.mark.node

ENTRYPOINT = "python -c \"print('done')\""


def assert_second_waited(observer: Observer, first: str, second: str) -> None:
    """No pod of the second gang had a node before the first job was over."""
    finished = next(
        s.at
        for s in observer.of("RayJob", first)
        if (s.object.get("status") or {}).get("jobDeploymentStatus") == "Complete"
    )
    bound = observer.first_bound(f"ray-{second}-pg")
    assert len(bound) >= 3
    assert min(bound.values()) >= finished


def run_two(api: Api, namespace: str, observer: Observer, jobs: list[dict[str, object]], *words: str) -> None:
    """Applies two jobs, the second once the first has its places; the second's PodGroup has to say `words`."""
    api.apply(jobs[:1])
    wait_until(lambda: len(observer.first_bound("ray-first-pg")) >= 3, "the first gang is bound", within=60)
    api.apply(jobs[1:])

    wait_for_refusal(api, "ray-second-pg", namespace, *words)
    wait_for_deployment_status(api, "first", namespace, "Complete", within=300)
    wait_for_deployment_status(api, "second", namespace, "Complete", within=300)
    assert_second_waited(observer, "first", "second")


@pytest.mark.long
def test_a_gang_waits_whole_for_its_queue(api: Api, target: Target, namespace: str, observer: Observer) -> None:
    name = f"{namespace}-queue"
    api.apply([queue(name, cpu="1")])
    try:
        jobs = [
            ray_job(job, namespace, ray_image=target.ray_image, entrypoint=ENTRYPOINT, queue_name=name)
            for job in ("first", "second")
        ]
        run_two(api, namespace, observer, jobs, name, "cpu")
    finally:
        api.delete("Queue", name)


@pytest.mark.alone
def test_a_gang_waits_whole_for_room_on_the_nodes(api: Api, target: Target, namespace: str, observer: Observer) -> None:
    # One worker of more than half a node's CPUs on each node: no room for a second such gang.
    nodes = [node for node in api.list("Node") if not node["spec"].get("taints")]
    jobs = [
        ray_job(
            job,
            namespace,
            ray_image=target.ray_image,
            entrypoint=ENTRYPOINT,
            workers=len(nodes),
            worker_cpu=more_than_half_of_each(nodes),
            head_cpu="200m",
        )
        for job in ("first", "second")
    ]
    run_two(api, namespace, observer, jobs, "cpu", "nodes")


def more_than_half_of_each(nodes: list[Manifest]) -> str:
    """A CPU request that fits once, not twice, on each of these nodes, which have to be alike."""
    milli = {int(float(node["status"]["allocatable"]["cpu"]) * 1000) for node in nodes}
    if len(milli) != 1:
        pytest.skip("needs nodes of one size, so that a big worker on each fills the cluster")
    return f"{milli.pop() // 2 + 100}m"
