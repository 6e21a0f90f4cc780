"""Token authentication of RayClusters and RayJobs on a real API server."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from muster.kube.resource import EVENTS, JOBS, PODS, RAYCLUSTERS, RAYJOBS, SECRETS
from tests.integration.observed import Observed, conditions
from tests.integration.operators import Operator, eventually
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import cluster_spec, ray_cluster, ray_job, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)
pytestmark = pytest.mark.usefixtures("operator")

AUTH = {"mode": "token"}
REFERENCE = {"secretKeyRef": {"name": "demo", "key": "auth_token"}}


async def create(seen: Observed, **auth: Any) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo", authOptions={**AUTH, **auth}))


async def secret(seen: Observed, name: str, token: str, key: str = "auth_token") -> None:
    manifest = {"metadata": {"name": name}, "stringData": {key: token}}
    await seen.api.create(SECRETS, seen.namespace, manifest)


async def told(seen: Observed, text: str) -> str:
    """Wait until the condition says it; the event does, too."""

    def says(cluster: dict[str, Any]) -> object:
        return text in (cluster.get("status") or {}).get("reason", "")

    await seen.until(RAYCLUSTERS, "demo", says, f"the status says {text!r}")
    return await seen.event("AuthTokenMissing", text)


def token_of(found: dict[str, Any]) -> str:
    return base64.b64decode(found["data"]["auth_token"]).decode()


async def test_the_token_is_made_once_and_nothing_but_its_secret_has_it(seen: Observed, operator: Operator) -> None:
    await create(seen)
    await seen.cluster_state("demo", "ready")
    found = await seen.get(SECRETS, "demo")
    assert found is not None
    token = token_of(found)
    assert len(base64.b64decode(token)) == 32
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("RayCluster", "demo", True)
    for pod in await seen.pods():
        env = {entry["name"]: entry for entry in pod["spec"]["containers"][0]["env"]}
        assert env["RAY_AUTH_MODE"]["value"] == "token"
        assert env["RAY_AUTH_TOKEN"]["valueFrom"] == REFERENCE
    await operator.kill()
    await operator.start()
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", {"metadata": {"labels": {"look": "again"}}})
    (head,) = await seen.pods("headgroup")
    await seen.api.delete(PODS, seen.namespace, head["metadata"]["name"], grace_seconds=0)

    async def another() -> bool:
        return [pod["metadata"]["uid"] for pod in await seen.pods("headgroup")] not in ([], [head["metadata"]["uid"]])

    await eventually(another, "another head")
    assert await seen.get(SECRETS, "demo") == found
    everything = json.dumps([await seen.all(kind) for kind in (PODS, EVENTS, JOBS, RAYCLUSTERS)])
    assert token not in everything
    assert found["data"]["auth_token"] not in everything


async def test_a_foreign_secret_is_not_taken_over(seen: Observed) -> None:
    await secret(seen, "demo", "theirs")
    await create(seen)
    await seen.event("NameTaken", "Secret demo exists already")
    assert await seen.pods() == []
    await seen.api.delete(SECRETS, seen.namespace, "demo")
    await seen.cluster_state("demo", "ready")
    found = await seen.get(SECRETS, "demo")
    assert found is not None
    assert token_of(found) != "theirs"


async def test_a_cluster_waits_for_the_secret_that_its_user_names(seen: Observed) -> None:
    await create(seen, secretName="mine")
    await told(seen, 'spec.authOptions.secretName: Secret "mine" does not exist')
    await secret(seen, "mine", "hush", key="token")
    await told(seen, 'spec.authOptions.secretName: Secret "mine" has no token under the key auth_token')
    await seen.api.patch(SECRETS, seen.namespace, "mine", {"data": {"auth_token": "/wAKgIE="}})
    await told(seen, 'Secret "mine" has no token under the key auth_token, which is not UTF-8; put one there')
    assert await seen.pods() == []
    await seen.api.patch(SECRETS, seen.namespace, "mine", {"stringData": {"auth_token": "hush"}})
    await seen.cluster_state("demo", "ready")
    assert await seen.get(SECRETS, "demo") is None


async def test_a_cluster_whose_users_secret_is_gone_is_made_smaller_all_the_same(seen: Observed) -> None:
    await secret(seen, "mine", "hush")
    await create(seen, secretName="mine")
    await seen.cluster_state("demo", "ready")
    await seen.api.delete(SECRETS, seen.namespace, "mine")
    smaller = {"spec": {"workerGroupSpecs": [worker_group(replicas=1)]}}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", smaller)

    async def one_is_left() -> bool:
        return len(await seen.pods("workers")) == 1

    await eventually(one_is_left, "one worker is left")
    await told(seen, 'Secret "mine" does not exist')
    larger = {"spec": {"workerGroupSpecs": [worker_group(replicas=2)]}}
    await seen.api.patch(RAYCLUSTERS, seen.namespace, "demo", larger)
    await secret(seen, "mine", "hush")

    async def two_again() -> bool:
        return len(await seen.pods("workers")) == 2

    await eventually(two_again, "two workers again")


async def test_a_lost_token_is_replaced_once_no_head_runs_with_it(seen: Observed, stand_ins: StandIns) -> None:
    await create(seen)
    await seen.cluster_state("demo", "ready")
    old = await seen.get(SECRETS, "demo")
    assert old is not None
    await seen.api.delete(SECRETS, seen.namespace, "demo")
    (worker, _) = await seen.pods("workers")
    await stand_ins.set_pod(worker["metadata"]["name"], phase="Failed", ready=False)
    assert "put the Secret back" in await told(seen, "Secret demo with the cluster's token is gone")
    assert conditions((await seen.all(RAYCLUSTERS))[0]["status"])["ReplicaFailure"] == "True"
    assert await seen.get(SECRETS, "demo") is None
    (head,) = await seen.pods("headgroup")
    await seen.api.delete(PODS, seen.namespace, head["metadata"]["name"], grace_seconds=0)

    new = await seen.until(SECRETS, "demo", lambda found: True, "another Secret")
    assert token_of(new) != token_of(old)

    async def another() -> bool:
        return [pod["metadata"]["uid"] for pod in await seen.pods("headgroup")] not in ([], [head["metadata"]["uid"]])

    await eventually(another, "another head")


async def test_jobs_of_both_modes_show_the_token(seen: Observed, dashboards: RayDashboards) -> None:
    await secret(seen, "mine", "hush")
    dashboards.token = "hush"
    spec = cluster_spec(authOptions={**AUTH, "secretName": "mine"})
    for name, mode in (("http", "HTTPMode"), ("pod", "K8sJobMode")):
        await seen.api.create(RAYJOBS, seen.namespace, ray_job(name, rayClusterSpec=spec, submissionMode=mode))
    await seen.job_state("http", "Complete")
    await seen.job_state("pod", "Complete")
    job = await seen.get(JOBS, "pod")
    assert job is not None
    env = {entry["name"]: entry for entry in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["RAY_AUTH_TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "mine", "key": "auth_token"}}
    assert env["RAY_AUTH_MODE"]["value"] == "token"
    everything = json.dumps([await seen.all(kind) for kind in (PODS, EVENTS, JOBS, RAYCLUSTERS, RAYJOBS)])
    assert "hush" not in everything


async def test_a_job_whose_token_is_gone_is_not_failed_at_once_and_ends_well_when_it_is_back(
    seen: Observed, dashboards: RayDashboards
) -> None:
    spec = cluster_spec(authOptions={**AUTH, "secretName": "mine"})
    await secret(seen, "mine", "wrong")
    dashboards.token = "hush"
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("job", rayClusterSpec=spec, submissionMode="HTTPMode"))
    await seen.job_state("job", "Running")
    await seen.until(
        RAYJOBS, "job", lambda job: job["status"].get("jobStatusCheckFailureStartTime"), "the dashboard's refusal"
    )
    await seen.api.patch(SECRETS, seen.namespace, "mine", {"stringData": {"auth_token": "hush"}})
    await seen.job_state("job", "Complete")
