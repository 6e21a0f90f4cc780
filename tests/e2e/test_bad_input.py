"""Bad input on a real cluster: a Warning that names the field, nothing half-made, others go on, and recovery."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.api import Api, wait_until
from tests.e2e.rayjobs import gang_pods, wait_for_deployment_status, wait_for_event, wait_for_refusal
from tests.e2e.target import Target
from tests.e2e.workloads import queue, ray_job

pytestmark = pytest.mark.node

PRINT = "python -c \"print('fine')\""


def test_what_cannot_work_is_refused_when_it_is_applied(api: Api, target: Target, namespace: str) -> None:
    job = ray_job("odd", namespace, ray_image=target.ray_image, entrypoint=PRINT, submissionMode="CarrierPigeon")

    def refused() -> str | None:
        words = api.refusal(job)
        if words is None:  # the webhook has not begun to answer: that counts as yes
            api.delete("RayJob", "odd", namespace)
        return words

    assert "spec.submissionMode: " in wait_until(refused, "the webhook refuses", within=60)


@pytest.mark.parametrize(
    ("field", "bad", "good"),
    [
        ("submissionMode", {"submissionMode": "CarrierPigeon"}, {"submissionMode": "K8sJobMode"}),
        ("runtimeEnvYAML", {"runtimeEnvYAML": "a: [1"}, {"runtimeEnvYAML": 'env_vars: {A: "1"}'}),
    ],
)
def test_a_refused_field_is_named_and_nothing_is_made_until_it_is_corrected(
    api: Api, target: Target, namespace: str, field: str, bad: dict[str, Any], good: dict[str, Any]
) -> None:
    job = ray_job("odd", namespace, ray_image=target.ray_image, entrypoint=PRINT, **bad)
    # As if it had been stored while the webhook was away.
    api.merge_patch("Namespace", namespace, None, {"metadata": {"labels": {"muster.dev/admission": "ignore"}}})
    wait_until(lambda: api.refusal(job) is None, "the API server has heard that the namespace is exempt", within=30)

    wait_for_event(api, "RayJob", "odd", namespace, text=field)
    for kind in ("RayCluster", "PodGroup", "Pod", "Job"):
        assert api.list(kind, namespace) == []

    api.merge_patch("RayJob", "odd", namespace, {"spec": good})
    assert wait_for_deployment_status(api, "odd", namespace, "Complete", within=300)["jobStatus"] == "SUCCEEDED"


def test_a_pod_that_no_node_could_hold_says_so_with_numbers_and_blocks_nobody(
    api: Api, target: Target, namespace: str
) -> None:
    largest = max(int(float(node["status"]["allocatable"]["cpu"])) for node in api.list("Node"))
    more = str(largest + 1)
    huge = ray_job("huge", namespace, ray_image=target.ray_image, entrypoint=PRINT, workers=1, worker_cpu=more)
    small = ray_job("small", namespace, ray_image=target.ray_image, entrypoint=PRINT)
    api.apply([huge])

    wait_for_refusal(api, "ray-huge-pg", namespace, "no node can ever hold", f"cpu {more}", f"cpu {largest}")

    api.apply([small])
    wait_for_deployment_status(api, "small", namespace, "Complete", within=300)
    assert all(not pod["spec"].get("nodeName") for pod in gang_pods(api, "huge", namespace))


def test_a_job_in_a_closed_queue_waits_with_that_reason_and_runs_when_it_opens(
    api: Api, target: Target, namespace: str
) -> None:
    name = f"{namespace}-queue"
    api.apply([queue(name)])
    try:
        wait_until(lambda: (api.get("Queue", name) or {}).get("status"), "the queue has a state", within=30)
        set_state(api, name, "Closed")
        api.apply([ray_job("late", namespace, ray_image=target.ray_image, entrypoint=PRINT, queue_name=name)])

        wait_for_refusal(api, "ray-late-pg", namespace, name, "Clos")
        assert all(not pod["spec"].get("nodeName") for pod in gang_pods(api, "late", namespace))

        set_state(api, name, "Open")
        wait_for_deployment_status(api, "late", namespace, "Complete", within=300)
    finally:
        api.delete("Queue", name)


def set_state(api: Api, name: str, state: str) -> None:
    """Writes a queue's state as an administrator's tool does."""
    api.resource("Queue").status.patch(
        body={"status": {"state": state}}, name=name, content_type="application/merge-patch+json"
    )
