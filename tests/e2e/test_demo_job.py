"""The main job: a RayJob with a head and two workers runs as a gang."""

from __future__ import annotations

import pytest

from tests.e2e.api import Api, wait_until
from tests.e2e.observer import Observer
from tests.e2e.rayjobs import gang_pods, submitter_pods, wait_for_deployment_status, wait_for_exit_codes
from tests.e2e.target import Target
from tests.e2e.workloads import sample

pytestmark = pytest.mark.node

JOB = "demo-job"
GROUP = "ray-demo-job-pg"


def test_the_sample_job_runs_as_a_gang_and_succeeds(
    api: Api, target: Target, namespace: str, observer: Observer
) -> None:
    documents = sample("queue.yaml", ray_image=target.ray_image) + sample("rayjob.yaml", ray_image=target.ray_image)
    for document in documents:
        if "namespace" in document["metadata"]:
            document["metadata"]["namespace"] = namespace
    api.apply(documents)

    status = wait_for_deployment_status(api, JOB, namespace, "Complete", within=300)

    assert status["jobStatus"] == "SUCCEEDED"
    assert wait_for_exit_codes(api, JOB, namespace, within=30) == [0]
    output = api.logs(submitter_pods(api, JOB, namespace)[0]["metadata"]["name"], namespace)
    assert "3 Ray nodes answered" in output
    assert output.count("a task ran in pod") == 3
    assert_the_gang_was_whole(api, namespace, observer)


def assert_the_gang_was_whole(api: Api, namespace: str, observer: Observer) -> None:
    """PodGroup and pods as the API server showed them: never a part of the gang, all phases in order."""
    wait_until(lambda: observer.phases(GROUP)[-1:] == ["Completed"], "PodGroup Completed", within=60)
    assert observer.phases(GROUP) == ["Pending", "Inqueue", "Running", "Completed"]
    group = observer.of("PodGroup", GROUP)[0].object
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (3, "ray-batch")

    ray_pods = [s for s in observer.pods_of_gang(GROUP) if s.object["metadata"]["labels"].get("ray.io/cluster")]
    names = {s.name for s in ray_pods}
    assert len(names) == 3
    bound = {name: at for name, at in observer.first_bound(GROUP).items() if name in names}
    assert set(bound) == names
    last_created = max(min(s.at for s in ray_pods if s.name == name) for name in names)
    assert min(bound.values()) >= last_created
    wait_until(
        lambda: all(not pod["metadata"]["labels"].get("ray.io/cluster") for pod in gang_pods(api, JOB, namespace)),
        "the cluster is gone after the job, as shutdownAfterJobFinishes says",
        within=60,
    )
