"""A pod template that the API server would refuse stops a job before anything is made for it."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster.api.rayjob import RayJob
from muster.controllers.clock import SystemClock
from muster.controllers.template_judge import TemplateJudge
from muster.kube.client import ApiClient
from muster.kube.resource import RAYCLUSTERS, RAYJOBS
from muster.ray.pod_options import PodOptions
from muster.ray.validation.made import made_of_ray_job
from tests.integration.fault_proxy import Answer, FaultProxy, ProxiedRequest, matching
from tests.integration.observed import Observed
from tests.integration.operators import Operator
from tests.integration.ray_dashboard import RayDashboards
from tests.integration.ray_manifests import ray_cluster, ray_job, template, worker_group
from tests.integration.stand_ins import StandIns

pytest_plugins = ("tests.integration.controller_fixtures",)


@pytest.fixture
async def operator(
    proxy: FaultProxy, namespace: str, dashboards: RayDashboards, stand_ins: StandIns
) -> AsyncIterator[Operator]:
    async with Operator(proxy.connection(), namespace, dashboards) as operator:
        yield operator


def misspelt() -> dict[str, Any]:
    bad = template()
    container = bad["spec"]["containers"][0]
    container["resoruces"] = container.pop("resources")
    return bad


def misnamed() -> dict[str, Any]:
    bad = template()
    bad["spec"]["containers"][0]["name"] = "Ray_Head"
    return bad


def mistyped() -> dict[str, Any]:
    return template(terminationGracePeriodSeconds="30")


def mistyped_inside() -> dict[str, Any]:
    bad = template()
    bad["spec"]["containers"][0]["securityContext"] = {"runAsUser": "1000"}
    return bad


def labelled(label: str) -> dict[str, Any]:
    return {**template(), "metadata": {"labels": {label: "x"}}}


def job_with(place: str, bad: dict[str, Any]) -> dict[str, Any]:
    job = ray_job("demo")
    cluster = job["spec"]["rayClusterSpec"] = copy.deepcopy(job["spec"]["rayClusterSpec"])
    if place == "head":
        cluster["headGroupSpec"]["template"] = bad
    elif place == "worker":
        cluster["workerGroupSpecs"] = [worker_group(template=bad)]
    else:
        job["spec"]["submitterPodTemplate"] = bad
    return job


@pytest.mark.parametrize(
    ("place", "bad", "field"),
    [
        ("head", misspelt(), "spec.rayClusterSpec.headGroupSpec.template.spec.containers[0].resoruces: "),
        ("head", misnamed(), "spec.rayClusterSpec.headGroupSpec.template.spec.containers[0].name: "),
        ("worker", misnamed(), "spec.rayClusterSpec.workerGroupSpecs[0].template.spec.containers[0].name: "),
        ("head", mistyped_inside(), "spec.rayClusterSpec.headGroupSpec.template.spec.containers.securityContext.runAs"),
        ("worker", mistyped(), "spec.rayClusterSpec.workerGroupSpecs[0].template.spec.terminationGracePeriodSeconds: "),
        ("submitter", misspelt(), "spec.submitterPodTemplate.spec.containers[0].resoruces: "),
        ("submitter", labelled("job-name"), "spec.submitterPodTemplate.metadata.labels[job-name]: "),
    ],
)
async def test_a_refused_template_is_named_and_nothing_is_made_until_it_is_corrected(
    seen: Observed, operator: Operator, place: str, bad: dict[str, Any], field: str
) -> None:
    await seen.api.create(RAYJOBS, seen.namespace, job_with(place, bad))
    assert field in await seen.event("InvalidRayJobSpec")
    assert field in (await seen.job_state("demo", "ValidationFailed"))["message"]
    assert await seen.nothing_made()
    good = {"submitterPodTemplate": None, **ray_job("demo")["spec"]}
    await seen.api.patch(RAYJOBS, seen.namespace, "demo", {"spec": good})
    await seen.job_state("demo", "Complete")


LABELS = ("job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid")


@pytest.mark.parametrize("label", LABELS)
async def test_a_label_that_no_submitter_can_have_is_named_in_few_words(
    api: ApiClient, namespace: str, label: str
) -> None:
    assert await judged(api, namespace, labelled(label)) == [
        f"spec.submitterPodTemplate.metadata.labels[{label}]: "
        "Kubernetes gives the pods of a Job this label itself; leave it out"
    ]


@pytest.mark.parametrize(
    "good",
    [template(), labelled("team"), {**template(), "metadata": {"labels": {"job-name": "demo"}}}],
    ids=["plain", "labelled", "the job's own name"],
)
async def test_a_submitter_that_can_be_made_passes(api: ApiClient, namespace: str, good: dict[str, Any]) -> None:
    assert await judged(api, namespace, good) == []


async def judged(api: ApiClient, namespace: str, submitter: dict[str, Any]) -> list[str]:
    job = RayJob.parse(ray_job("demo", submitterPodTemplate=submitter))
    (asked,) = (each for each in made_of_ray_job(job, PodOptions()) if each.path == "spec.submitterPodTemplate")
    return [str(problem) for problem in await TemplateJudge(api, SystemClock()).problems(namespace, [asked])]


async def test_a_cluster_that_stands_alone_is_judged_too(seen: Observed, operator: Operator) -> None:
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo", worker_group(template=misspelt())))
    assert "spec.workerGroupSpecs[0].template.spec.containers[0].resoruces: " in await seen.event(
        "InvalidRayClusterSpec"
    )
    assert await seen.nothing_made()


def trial_of_a_job(request: ProxiedRequest) -> bool:
    return request.path.endswith("/jobs") and "dryRun" in request.query


async def test_equal_templates_are_asked_about_once(seen: Observed, operator: Operator, proxy: FaultProxy) -> None:
    for name in ("one", "two", "three"):
        await seen.api.create(RAYJOBS, seen.namespace, ray_job(name, submitterPodTemplate=template()))
        await seen.job_state(name, "Complete")
    asked = matching("POST", "/podtemplates$")
    assert len([request for request in proxy.requests if asked(request)]) == 2, "one for heads, one for workers"
    assert len([request for request in proxy.requests if trial_of_a_job(request)]) == 1, "one for submitters"


async def test_an_amount_that_takes_the_api_server_hours_to_read_is_refused_before_it_is_asked(
    seen: Observed, operator: Operator, proxy: FaultProxy
) -> None:
    asked = proxy.inject(Answer(504, "Timeout"), when=matching("POST", "/podtemplates$"), times=None)
    huge = template()
    huge["spec"]["volumes"] = [{"name": "v", "emptyDir": {"sizeLimit": "1e2147483647"}}]
    await seen.api.create(RAYJOBS, seen.namespace, job_with("worker", template(cpu="1e99999999999")))
    place = "workerGroupSpecs[0].template.spec.containers[0].resources.requests[cpu]: "
    assert f"spec.rayClusterSpec.{place}" in (await seen.job_state("demo", "ValidationFailed"))["message"]
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo", worker_group(template=huge)))
    field = "spec.workerGroupSpecs[0].template.spec.volumes[0].emptyDir.sizeLimit: "
    await seen.event("InvalidRayClusterSpec", field)
    assert asked.hits == 0
    assert await seen.nothing_made()


async def test_a_template_that_the_api_server_is_late_with_is_named(
    seen: Observed, operator: Operator, proxy: FaultProxy
) -> None:
    proxy.inject(Answer(504, "Timeout"), when=matching("POST", "/podtemplates$"), times=None)
    await seen.api.create(RAYCLUSTERS, seen.namespace, ray_cluster("demo"))
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo"))
    late = "headGroupSpec.template: the API server did not say in time"
    await seen.event("FailedToReconcile", f" spec.{late}")
    await seen.event("FailedToReconcile", f" spec.rayClusterSpec.{late}")


@pytest.mark.parametrize(
    "answer",
    [Answer(403, "Forbidden"), Answer(400, "BadRequest"), Answer(500, "InternalError")],
    ids=["not allowed to ask", "a webhook that can't take part", "a server that fails for a while"],
)
async def test_without_a_word_on_the_template_the_job_goes_on(
    seen: Observed, operator: Operator, proxy: FaultProxy, answer: Answer
) -> None:
    struck = proxy.inject(answer, when=matching("POST", "/podtemplates$"), times=2)
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo"))
    await seen.job_state("demo", "Complete")
    assert struck.hits >= 1


async def test_a_template_of_the_submitter_that_could_not_be_judged_before_fails_the_job_when_it_is_refused(
    seen: Observed, operator: Operator, proxy: FaultProxy
) -> None:
    # Without a word on the template the Job that is made has the last one.
    proxy.inject(Answer(403, "Forbidden"), when=trial_of_a_job, times=None)
    bad = template()
    bad["spec"]["containers"][0]["imagePullPolicy"] = "Sometimes"
    await seen.api.create(RAYJOBS, seen.namespace, ray_job("demo", submitterPodTemplate=bad))
    status = await seen.job_state("demo", "Failed")
    assert status["reason"] == "SubmissionFailed"
    assert "submitterPodTemplate" in status["message"]
    assert "imagePullPolicy" in status["message"]
