"""The operator is killed without warning: what it was doing ends as it would have ended anyway (P5)."""

from __future__ import annotations

import pytest

from tests.e2e import killer
from tests.e2e.api import Api, wait_until
from tests.e2e.observer import Observer
from tests.e2e.rayjobs import status_of, wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import ray_job

# Not beside other tests, which would have no operator for a while.
pytestmark = [pytest.mark.node, pytest.mark.alone]


def wait_for_restart(api: Api, before: int) -> None:
    wait_until(lambda: killer.restarts(api) > before, "the operator was started again", within=90)


def assert_one_of_each(api: Api, namespace: str, observer: Observer, job: str) -> None:
    """Nothing was made twice: one cluster, one PodGroup, one submitter Job, three Ray pods in all."""
    assert len(api.list("PodGroup", namespace)) == 1
    assert len(api.list("Job", namespace)) == 1
    pods = [s for s in observer.of("Pod") if (s.object["metadata"].get("labels") or {}).get("ray.io/cluster")]
    assert len({s.object["metadata"]["labels"]["ray.io/cluster"] for s in pods}) == 1
    assert len({s.name for s in pods}) == 3
    assert observer.phases(f"ray-{job}-pg")[-1] == "Completed"


def wait_for_the_nodes(api: Api, namespace: str) -> None:
    """Until no pod of an earlier test is left, so that each node has the room that its fellows have."""

    def gone() -> bool:
        others = {pod["metadata"]["namespace"] for pod in api.list("Pod")} - {namespace}
        return not any(name.startswith("e2e-") for name in others)

    wait_until(gone, "the pods of earlier tests are gone", within=120)


def assert_it_was_spread(api: Api, observer: Observer) -> None:
    """The gang lay on several nodes. Asked here, where no other test's pods leave room on one node only."""
    pods = [s for s in observer.of("Pod") if (s.object["metadata"].get("labels") or {}).get("ray.io/cluster")]
    nodes = {s.object["spec"]["nodeName"] for s in pods if s.object["spec"].get("nodeName")}
    assert len(nodes) > 1 or len(api.list("Node")) < 3


# This one comes first: the kubelet waits ten seconds before it starts a container again for the second time, and the
# other test has that time to spare, while its Ray pods start.
def test_killed_while_a_job_runs_it_ends_the_same(api: Api, target: Target, namespace: str, observer: Observer) -> None:
    wait_for_the_nodes(api, namespace)
    before = killer.restarts(api)
    killer.arm(api, namespace, target.ray_image, "running")
    entrypoint = "python -c \"import time; time.sleep(10); print('alive')\""
    api.apply([ray_job("hit", namespace, ray_image=target.ray_image, entrypoint=entrypoint)])
    killer.wait_for_kill(api, namespace)
    submission = status_of(api, "hit", namespace)["jobId"]
    wait_for_restart(api, before)

    status = wait_for_deployment_status(api, "hit", namespace, "Complete", within=240)

    assert (status["jobStatus"], status["jobId"]) == ("SUCCEEDED", submission)
    wait_until(lambda: observer.phases("ray-hit-pg")[-1:] == ["Completed"], "PodGroup Completed", within=60)
    assert_one_of_each(api, namespace, observer, "hit")
    assert_it_was_spread(api, observer)


def test_killed_while_a_gang_is_being_bound_it_ends_the_same(
    api: Api, target: Target, namespace: str, observer: Observer
) -> None:
    before = killer.restarts(api)
    killer.arm(api, namespace, target.ray_image, "binding")
    api.apply([ray_job("hit", namespace, ray_image=target.ray_image, entrypoint="python -c \"print('alive')\"")])
    killer.wait_for_kill(api, namespace)
    wait_for_restart(api, before)

    status = wait_for_deployment_status(api, "hit", namespace, "Complete", within=240)

    assert status["jobStatus"] == "SUCCEEDED"
    wait_until(lambda: observer.phases("ray-hit-pg")[-1:] == ["Completed"], "PodGroup Completed", within=60)
    assert_one_of_each(api, namespace, observer, "hit")
