"""Room for the submitter is held from the moment that its gang is placed, whatever else is waiting."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api, Manifest, wait_until
from tests.e2e.observer import Observer
from tests.e2e.rayjobs import wait_for_deployment_status
from tests.e2e.target import Target
from tests.e2e.workloads import queue, ray_job

pytestmark = pytest.mark.node


def lone_gang(name: str, namespace: str, queue_name: str, image: str, *, cpu: str) -> list[Manifest]:
    """A PodGroup of one pod, which ends as soon as it runs."""
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": 1, "queue": queue_name, "minResources": {"cpu": cpu}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"scheduling.k8s.io/group-name": name},
        },
        "spec": {
            "schedulerName": "muster",
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": "main",
                    "image": image,
                    "command": ["true"],
                    "resources": {"requests": {"cpu": cpu}},
                }
            ],
        },
    }
    return [group, pod]


def test_a_job_that_just_fits_gets_its_submitter_though_another_gang_waits_for_that_room(
    api: Api, target: Target, namespace: str, observer: Observer
) -> None:
    # 400m for the head, 250m for each of two workers and 50m for the submitter: nothing is left over.
    name = f"{namespace}-queue"
    api.apply([queue(name, cpu="950m")])
    try:
        job = ray_job(
            "tight",
            namespace,
            ray_image=target.ray_image,
            entrypoint="python -c \"print('fits')\"",
            queue_name=name,
        )
        api.apply([job])
        wait_until(lambda: len(observer.first_bound("ray-tight-pg")) >= 3, "the gang is bound", within=60)
        api.apply(lone_gang("greedy", namespace, name, target.ray_image, cpu="50m"))

        wait_for_deployment_status(api, "tight", namespace, "Complete", within=300)

        wait_until(lambda: observer.first_bound("greedy"), "the other gang has its turn afterwards", within=60)
        bound = observer.first_bound("ray-tight-pg")
        of_the_submitter = [at for pod, at in bound.items() if pod in submitters(observer)]
        assert min(observer.first_bound("greedy").values()) > min(of_the_submitter)
    finally:
        api.delete("Queue", name)


def submitters(observer: Observer) -> set[str]:
    """The names of the pods that the submitter Job made."""
    pods = observer.of("Pod")
    return {s.name for s in pods if "batch.kubernetes.io/job-name" in (s.object["metadata"].get("labels") or {})}
