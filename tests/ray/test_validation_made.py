"""What is made of a spec to be tried out. What the API server says of it is tested on a real one."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.errors import FieldProblem
from muster.api.metadata import ObjectMeta
from muster.api.raycluster import RayCluster
from muster.ray.every_pod import EveryPod
from muster.ray.gang_membership import GangMembership
from muster.ray.pod_options import PodOptions
from muster.ray.pods import head_pod, worker_pod
from muster.ray.submitter import submitter_job
from muster.ray.validation.made import Made, made_of_ray_cluster, made_of_ray_job
from tests.ray.ray_objects import ray_cluster, ray_job, template, worker_group

OPTIONS = PodOptions(every_pod=EveryPod(head_sidecars=({"name": "logs", "image": "logs"},)))


def made(cluster: RayCluster, options: PodOptions = OPTIONS) -> list[Made]:
    return made_of_ray_cluster(cluster, options)


def test_clusters_of_one_make_have_one_key() -> None:
    redis = {"redisAddress": "redis:6379"}
    one = ray_cluster(name="one", workers=[worker_group("a", replicas=1)], gcsFaultToleranceOptions=redis)
    metadata = {"uid": "uid-9", "labels": {"volcano.sh/queue-name": "q"}, "annotations": {"mine": "x"}}
    two = ray_cluster(
        name="two", workers=[worker_group("b", replicas=2)], metadata=metadata, gcsFaultToleranceOptions=redis
    )
    assert [each.key for each in made(one)] == [each.key for each in made(two)]
    assert [each.body for each in made(one)] == [each.body for each in made(two)]


def test_a_job_and_its_cluster_are_one_question() -> None:
    job = ray_job(rayClusterSpec=ray_cluster(workers=[worker_group()]).spec.dump())
    own = ray_cluster(workers=[worker_group()], metadata={"labels": {"ray.io/originated-from-crd": "RayJob"}})
    assert [each.key for each in made_of_ray_job(job, OPTIONS)] == [each.key for each in made(own)]


SUBMITTER: dict[str, Any] = {
    "metadata": {"labels": {"team": "a"}},
    "spec": {"containers": [{"name": "s", "image": "mine", "command": ["submit"]}]},
}


def submitters(name: str = "job", *, mode: str | None = None, **spec: Any) -> list[Made]:
    job = ray_job(submitterPodTemplate=SUBMITTER, submissionMode=mode, **spec)
    return made_of_ray_job(job.model_copy(update={"metadata": ObjectMeta(name=name, namespace="default")}), OPTIONS)


def test_submitters_of_one_make_are_one_question_whatever_they_submit() -> None:
    (one,) = submitters("one", entrypoint="python one.py", runtimeEnvYAML="{}", metadata={"who": "me"})
    (two,) = submitters("two", entrypoint="python two.py", entrypointResources="{}")
    assert (one.key, one.body) == (two.key, two.body)
    (other,) = submitters("one", clusterSelector={"ray.io/cluster": "theirs"})
    assert other.key != one.key
    assert other.body != one.body, "it is a member of no gang"


def test_the_submitter_is_asked_about_as_the_job_that_is_made() -> None:
    (asked,) = submitters(submitterConfig={"backoffLimit": 7})
    job = ray_job(submitterPodTemplate=SUBMITTER, entrypoint="python x.py")
    gang = GangMembership("ray-job-pg")
    real = submitter_job(job, image="muster", dashboard_address="a:1", submission_id="s", gang=gang)
    wanted, found = real["spec"]["template"], asked.body["spec"]["template"]
    assert found["metadata"]["labels"].keys() == wanted["metadata"]["labels"].keys()
    assert found["metadata"]["annotations"].keys() == wanted["metadata"]["annotations"].keys()
    assert {**found["spec"], "containers": 0} == {**wanted["spec"], "containers": 0}
    assert {**found["spec"]["containers"][0], "env": 0} == {**wanted["spec"]["containers"][0], "env": 0}


@pytest.mark.parametrize("mode", ["HTTPMode", "SidecarMode", "InteractiveMode"])
def test_where_no_submitter_is_made_its_template_is_asked_about_as_it_was_written(mode: str) -> None:
    (asked,) = submitters(mode=mode)
    assert asked.body == SUBMITTER


def test_nothing_is_asked_about_a_submitter_that_is_muster_s_own() -> None:
    assert made_of_ray_job(ray_job(entrypoint="python x.py"), OPTIONS) == []


@pytest.mark.parametrize("label", ["job-name", "batch.kubernetes.io/job-name", "controller-uid"])
def test_a_label_that_kubernetes_gives_is_told_as_such(label: str) -> None:
    (asked,) = submitters()
    problem = FieldProblem(f"metadata.labels[{label}]", 'Invalid value: {"a":"b"}: must be \'x\'')
    told = asked.told(problem)
    assert told.path == f"spec.submitterPodTemplate.metadata.labels[{label}]"
    assert told.message == "Kubernetes gives the pods of a Job this label itself; leave it out"


def test_the_name_that_the_job_will_have_may_be_written() -> None:
    labels = {"job-name": "job", "batch.kubernetes.io/job-name": "another"}
    template = {**SUBMITTER, "metadata": {"labels": labels}}
    (asked,) = made_of_ray_job(ray_job(submitterPodTemplate=template), OPTIONS)
    found = asked.body["spec"]["template"]["metadata"]["labels"]
    assert "job-name" not in found, "the server adds that of the Job that it is asked about"
    assert found["batch.kubernetes.io/job-name"] == "another"


DIFFERENT: list[dict[str, Any]] = [
    {"rayVersion": "2.60.0"},
    {"enableInTreeAutoscaling": True},
    {"authOptions": {"mode": "token"}},
    {"head": {"rayStartParams": {"port": "7000"}}},
    {"head": {"headService": {"metadata": {"name": "mine"}}}},
    {"metadata": {"annotations": {"ray.io/ft-enabled": "true"}}},
    {"metadata": {"annotations": {"ray.io/overwrite-container-cmd": "true"}}},
]


@pytest.mark.parametrize("change", DIFFERENT)
def test_whatever_makes_other_pods_makes_another_key(change: dict[str, Any]) -> None:
    before, after = made(ray_cluster(workers=[worker_group()])), made(ray_cluster(workers=[worker_group()], **change))
    for old, new in zip(before, after, strict=False):
        assert old.body == new.body or old.key != new.key
    assert [one.body for one in before] != [one.body for one in after]


def test_what_is_made_is_what_the_pods_will_be() -> None:
    cluster = ray_cluster(workers=[worker_group()], enableInTreeAutoscaling=True)
    head, worker = made(cluster)
    group = cluster.spec.worker_groups[0]
    for tried_out, pod in ((head, head_pod(cluster, "x", options=OPTIONS)), (worker, worker_pod(cluster, group, "x"))):
        for kind in ("containers", "initContainers", "volumes"):
            names = [[one["name"] for one in spec.get(kind) or []] for spec in (tried_out.body["spec"], pod["spec"])]
            assert names[0] == names[1]
        assert pod["metadata"]["labels"].keys() <= tried_out.body["metadata"]["labels"].keys()
        assert pod["metadata"]["annotations"].keys() <= tried_out.body["metadata"]["annotations"].keys()


def test_what_a_user_writes_beside_stays_to_be_judged() -> None:
    odd = {**template(metadata={"labls": {}}), "spce": {}}
    _, worker = made(ray_cluster(workers=[worker_group(template=odd)]))
    assert worker.body["metadata"]["labls"] == {}
    assert worker.body["spce"] == {}


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (
            FieldProblem("spec.initContainers[0].env[0].name", "Invalid value"),
            "spec.workerGroupSpecs[0].template.spec.containers[0].env[0].name: Invalid value",
        ),
        (
            FieldProblem("spec.initContainers[0].resources", "Invalid value"),
            "spec.workerGroupSpecs[0].template.spec: Muster adds initContainers[0].resources to it, which the API "
            "server refuses: Invalid value",
        ),
        (FieldProblem("spec.nodeSelector", "Required value"), "spec.workerGroupSpecs[0].template.spec.nodeSelector: R"),
        (FieldProblem("", "bad"), "spec.workerGroupSpecs[0].template: bad"),
    ],
    ids=["what the init container has from Ray's", "what is Muster's", "what nobody wrote", "all of it"],
)
def test_a_problem_is_told_by_the_field_that_it_comes_from(problem: FieldProblem, told: str) -> None:
    workers = [worker_group(template=template(env=[{"name": "A B"}]))]
    _, worker = made(ray_cluster(workers=workers))
    assert str(worker.told(problem)).startswith(told)
