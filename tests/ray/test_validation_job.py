"""The rules for a RayJob."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muster.api.rayjob import RayJob
from muster.ray.validation import validate_ray_job
from tests.ray.cluster_case import VALID as CLUSTER
from tests.ray.cluster_case import Json, with_fields


def job(metadata: Json | None = None, **spec: Any) -> Json:
    fields = {"entrypoint": "python job.py", "rayClusterSpec": copy.deepcopy(CLUSTER["spec"]), **spec}
    written = {key: value for key, value in fields.items() if value is not Ellipsis}
    return {"metadata": {"name": "demo-job", "namespace": "default", **(metadata or {})}, "spec": written}


def problems(obj: Json) -> list[str]:
    return [str(problem) for problem in validate_ray_job(RayJob.parse(obj))]


def rule(policy: str = "DeleteCluster", **condition: Any) -> Json:
    return {"policy": policy, "condition": {"jobStatus": "FAILED", **condition}}


def rules(*written: Json) -> Json:
    return {"deletionRules": list(written)}


def older(success: str, failure: str) -> Json:
    return {"onSuccess": {"policy": success}, "onFailure": {"policy": failure}}


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "\n".join(
    f"{name}: &{name} [{','.join([f'*{previous}'] * 9)}]" for previous, name in zip("abcdefgh", "bcdefghi", strict=True)
)


OWN_COMMAND: Json = {
    "spec": {"containers": [{"name": "s", "command": ["ray", "job", "submit", "--", "python", "job.py"]}]}
}


@pytest.mark.parametrize(
    "obj",
    [
        job(),
        job(submissionMode="K8sJobMode"),
        job(submissionMode="HTTPMode"),
        job(submissionMode="InteractiveMode"),
        job(submissionMode="SidecarMode"),
        job(submissionMode="InteractiveMode", jobId="mine", backoffLimit=0),
        job(submissionMode=""),
        job(entrypoint=..., submissionMode="InteractiveMode"),
        job(entrypoint=..., submitterPodTemplate=OWN_COMMAND),
        job(entrypoint=" ", submissionMode="K8sJobMode", submitterPodTemplate=OWN_COMMAND),
        job(suspend=True, shutdownAfterJobFinishes=True),
        job(suspend=False),
        job(ttlSecondsAfterFinished=10, shutdownAfterJobFinishes=True),
        job(ttlSecondsAfterFinished=0),
        job(runtimeEnvYAML="pip: [requests]\nenv_vars:\n  A: '1'\n"),
        job(runtimeEnvYAML=""),
        job(runtimeEnvYAML="# nothing yet\n"),
        job(runtimeEnvYAML="---\n~\n"),
        job(runtimeEnvYAML="env_vars: {SINCE: 2026-01-01}"),
        job(activeDeadlineSeconds=1, preRunningDeadlineSeconds=1, backoffLimit=3),
        job(submitterConfig={"backoffLimit": 0}),
        job(entrypointNumCpus=0.5, entrypointNumGpus=1, entrypointResources='{"custom": 0.5}'),
        job(submitterPodTemplate={"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "s"}]}}),
        job(submitterPodTemplate={"spec": {"nodeSelector": {"a": "b"}}}),
        job(submitterPodTemplate={"metadata": {"finalizers": ["example.com/mine", "kubernetes", "orphan"]}}),
        job(clusterSelector={}),
        job(clusterSelector={"ray.io/cluster": "x"}, rayClusterSpec=...),
        job(clusterSelector={"ray.io/cluster": "x"}),
        job(clusterSelector={"ray.io/cluster": "x"}, rayClusterSpec=..., suspend=True),
        job(deletionStrategy=rules(rule("DeleteWorkers"), rule(ttlSeconds=5), rule("DeleteSelf", ttlSeconds=5))),
        job(deletionStrategy=rules(rule(), rule(jobStatus=None, jobDeploymentStatus="Failed"))),
        job(deletionStrategy=rules(rule()), suspend=True),
        job(
            deletionStrategy=rules(rule("DeleteSelf")),
            clusterSelector={"ray.io/cluster": "x"},
            rayClusterSpec=...,
        ),
        job(deletionStrategy=older("DeleteCluster", "DeleteNone")),
        job(
            deletionStrategy=older("DeleteSelf", "DeleteWorkers"),
            shutdownAfterJobFinishes=True,
            ttlSecondsAfterFinished=5,
        ),
        job({"name": "x" * 47}),
        job(runtimeEnvYAML="1: a\nb: c"),
        job(submissionMode="HTTPMode", entrypoint="x" * 131_000),
        job(jobId=""),
        job(jobId="x" * 240),
        job(jobId=" My job.2: a?b#c%2F\\ü…"),
        job(jobId="..."),
    ],
)
def test_what_users_of_kuberay_write_is_fine(obj: Json) -> None:
    assert problems(obj) == []


NOTHING_TO_RUN = "spec.entrypoint: is required; write the command that Ray is to run"


@pytest.mark.parametrize("entrypoint", [..., None, "", " \n"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"submissionMode": "K8sJobMode"},
        {"submissionMode": "HTTPMode"},
        {"submissionMode": "SidecarMode"},
        {"clusterSelector": {"ray.io/cluster": "x"}, "rayClusterSpec": ...},
        {"submissionMode": "HTTPMode", "submitterPodTemplate": OWN_COMMAND},
        {"submitterPodTemplate": {"spec": {"containers": [{"name": "s", "args": ["x"], "command": []}]}}},
        {"submitterPodTemplate": {"spec": {"containers": [{"name": "s"}, *OWN_COMMAND["spec"]["containers"]]}}},
        {"submitterPodTemplate": {"spec": {"nodeSelector": {"a": "b"}}}},
    ],
)
def test_a_job_has_something_to_run(entrypoint: Any, fields: Json) -> None:
    assert problems(job(entrypoint=entrypoint, **fields)) == [NOTHING_TO_RUN]


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        (job({"name": "x" * 48}), "metadata.name: has 48 characters; at most 47 leave room"),
        (job({"name": "Demo"}), 'metadata.name: "Demo" can\'t name a Service'),
        (job({"labels": {"volcano.sh/queue-name": "A"}}), 'metadata.labels[volcano.sh/queue-name]: "A" can\'t be'),
        (job(rayClusterSpec=...), "spec.rayClusterSpec: is required; describe the cluster to run on"),
        (
            job(submissionMode="Carrier"),
            'spec.submissionMode: "Carrier" is no submission mode; use K8sJobMode, HTTPMode, InteractiveMode, Si',
        ),
        (job(submissionMode="httpmode"), 'spec.submissionMode: "httpmode" is no submission mode'),
        (
            job(submissionMode="InteractiveMode", backoffLimit=1),
            "spec.backoffLimit: can't be combined with InteractiveMode: nobody else can submit the job again",
        ),
        (
            job(submissionMode="SidecarMode", submitterPodTemplate={}),
            "spec.submitterPodTemplate: is not possible in SidecarMode; leave it out, or use K8sJobMode",
        ),
        (
            job(submissionMode="SidecarMode", submitterConfig={}),
            "spec.submitterConfig: is not possible in SidecarMode; leave it out, or use K8sJobMode",
        ),
        (
            job(submissionMode="SidecarMode", clusterSelector={"ray.io/cluster": "x"}, rayClusterSpec=...),
            "spec.submissionMode: SidecarMode needs a cluster of the job's own, not clusterSelector",
        ),
        (job(jobId="x" * 241), "spec.jobId: has 241 bytes, and Ray takes at most 240; shorten it or leave it out"),
        (job(jobId="ü" * 121), "spec.jobId: has 242 bytes, and Ray takes at most 240"),
        (job(jobId="x" * 140_000), "spec.jobId: has 140000 bytes"),
        (job(jobId="a/b"), 'spec.jobId: "a/b" has a slash or a control character; use letters'),
        (job(jobId="a\nb"), 'spec.jobId: "a\\nb" has a slash or a control character'),
        (job(jobId="a\0b"), 'spec.jobId: "a\\u0000b" has a slash or a control character'),
        (job(jobId="a\x85b"), 'spec.jobId: "a\\u0085b" has a slash or a control character'),
        (job(jobId=".."), 'spec.jobId: ".." leads to another place in a URL; use letters'),
        (job(jobId="."), 'spec.jobId: "." leads'),
        (
            job(submissionMode="SidecarMode", entrypoint="x" * 131_000),
            "spec.entrypoint: is too long with runtime",
        ),
        (
            job(clusterSelector={"ray.io/cluster": ""}, rayClusterSpec=...),
            "spec.clusterSelector[ray.io/cluster]: is required; name the RayCluster to run on",
        ),
        (job(clusterSelector={"a": "b"}), "spec.clusterSelector[ray.io/cluster]: is required; name"),
        (job(clusterSelector={"ray.io/cluster": "A b"}), 'spec.clusterSelector[ray.io/cluster]: "A b" can\'t be the'),
        (
            job(clusterSelector={"ray.io/cluster": "x"}, backoffLimit=1),
            "spec.backoffLimit: can't be combined with clusterSelector: each attempt needs a new cluster",
        ),
        (
            job(clusterSelector={"ray.io/cluster": "x"}, suspend=True, jobId="mine"),
            "spec.suspend: can't be combined with clusterSelector and jobId: Ray takes an id only once",
        ),
        (
            job(deletionStrategy=rules(rule()), shutdownAfterJobFinishes=True),
            "spec.deletionStrategy.deletionRules: can't be combined with shutdownAfterJobFinishes",
        ),
        (
            job(deletionStrategy=rules(rule(), rule("DeleteNone"), rule(ttlSeconds=9))),
            "spec.deletionStrategy.deletionRules[2]: repeats deletionRules[0]: DeleteCluster on jobStatus FAILED; keep",
        ),
        (
            job(deletionStrategy=rules(rule("DeleteSelf", ttlSeconds=5), rule(ttlSeconds=9))),
            "spec.deletionStrategy.deletionRules[0].condition.ttlSeconds: DeleteSelf comes after 5 s, before Delete",
        ),
        (
            job(deletionStrategy=rules(rule("DeleteEverything"))),
            "spec.deletionStrategy.deletionRules[0].policy: must be one of DeleteCluster, DeleteWorkers, DeleteSelf",
        ),
        (
            job(deletionStrategy=rules(rule(ttlSeconds=-1))),
            "spec.deletionStrategy.deletionRules[0].condition.ttlSeconds: must not be negative, got -1",
        ),
        (
            job(deletionStrategy=rules(rule(jobDeploymentStatus="Failed"))),
            "spec.deletionStrategy.deletionRules[0].condition: must have one of jobStatus and jobDeploymentStatus",
        ),
        (
            job(deletionStrategy=rules(rule()), clusterSelector={"ray.io/cluster": "x"}, rayClusterSpec=...),
            "spec.deletionStrategy.deletionRules[0].policy: DeleteCluster is not possible with clusterSelector",
        ),
        (
            job(deletionStrategy={"onSuccess": {"policy": "DeleteNone"}}),
            "spec.deletionStrategy.onFailure.policy: is required; set onSuccess and onFailure, or use deletionRules",
        ),
        (
            job(deletionStrategy=older("DeleteNone", "DeleteCluster"), shutdownAfterJobFinishes=True),
            "spec.deletionStrategy.onSuccess.policy: DeleteNone contradicts shutdownAfterJobFinishes: true",
        ),
        (
            job(deletionStrategy={**older("DeleteNone", "DeleteNone"), **rules(rule())}),
            "spec.deletionStrategy: onSuccess and onFailure can't be combined with deletionRules",
        ),
        (
            job({"annotations": {"muster.dev/fail-fast": "yes"}}),
            'metadata.annotations[muster.dev/fail-fast]: must be "true" or "false", not "yes"',
        ),
        (job(suspend=True), "spec.suspend: needs shutdownAfterJobFinishes: true"),
        (job(ttlSecondsAfterFinished=5), "spec.ttlSecondsAfterFinished: needs shutdownAfterJobFinishes: true"),
        (job(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished: must not be negative, got -1"),
        (job(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds: must be more than 0, got 0"),
        (job(activeDeadlineSeconds=-5), "spec.activeDeadlineSeconds: must be more than 0, got -5"),
        (job(preRunningDeadlineSeconds=0), "spec.preRunningDeadlineSeconds: must be more than 0, got 0"),
        (job(backoffLimit=-1), "spec.backoffLimit: must not be negative, got -1"),
        (job(submitterConfig={"backoffLimit": -1}), "spec.submitterConfig.backoffLimit: must not be negative, got -1"),
        (job(runtimeEnvYAML="pip: [requests"), "spec.runtimeEnvYAML: is not YAML: while parsing"),
        (
            job(runtimeEnvYAML="just text"),
            "spec.runtimeEnvYAML: must be a YAML mapping such as `pip: [requests]`, not a s",
        ),
        (job(runtimeEnvYAML="- pip"), "spec.runtimeEnvYAML: must be a YAML mapping such as `pip: [requests]`, not a l"),
        (job(runtimeEnvYAML="!!python/object:os.system {}"), "spec.runtimeEnvYAML: is not YAML: Kubernetes knows no …"),
        (job(runtimeEnvYAML="a: 1\n---\nb: 2"), "spec.runtimeEnvYAML: has more than one YAML document"),
        (job(runtimeEnvYAML="a: &a [*a]"), "spec.runtimeEnvYAML: "),
        (job(runtimeEnvYAML=BOMB), "spec.runtimeEnvYAML: has more than 100000 characters when its aliases are"),
        (job(runtimeEnvYAML="[" * 5000), "spec.runtimeEnvYAML: is not YAML: "),
        (job(runtimeEnvYAML="a: " + "[" * 200 + "]" * 200), "spec.runtimeEnvYAML: is nested more than 100 levels deep"),
        (job(runtimeEnvYAML=f"a: [{'1,' * 10_000}]"), "spec.runtimeEnvYAML: has more than 10000 keys and values"),
        (job(runtimeEnvYAML='a: !!int ""'), "spec.runtimeEnvYAML: is not YAML: "),
        (job(runtimeEnvYAML="a: !!bool maybe"), "spec.runtimeEnvYAML: is not YAML: "),
        (job(runtimeEnvYAML="a: !!timestamp now"), "spec.runtimeEnvYAML: is not YAML: "),
        (job(runtimeEnvYAML="a: .nan"), "spec.runtimeEnvYAML: can't be sent to Ray as JSON: Out of range"),
        (job(runtimeEnvYAML='a: "\\ud800"'), "spec.runtimeEnvYAML: is not YAML: "),
        (job(runtimeEnvYAML="#" * 100_001), "spec.runtimeEnvYAML: has more than 100000 characters; shorten it"),
        (job(entrypointResources="[" * 100_000), "spec.entrypointResources: is not JSON: "),
        (job(entrypoint="x" * 131_000), "spec.entrypoint: is too long with runtimeEnvYAML and metadata: 131"),
        (
            job(entrypoint="x" * 90_000, runtimeEnvYAML="a: " + "é" * 10_000),
            "spec.entrypoint: is too long with runtimeEnv",
        ),
        (job(entrypointNumCpus=-1), "spec.entrypointNumCpus: must be a number from 0 up, got -1"),
        (job(entrypointNumGpus=float("nan")), "spec.entrypointNumGpus: must be a number from 0 up, got nan"),
        (
            job(deletionStrategy=rules(*(rule(jobStatus=f"S{number}") for number in range(1000)))),
            "spec.deletionStrategy.deletionRules: has 1000 rules, at most 100 can be told apart; ",
        ),
        (job(entrypointResources="{custom: 1}"), "spec.entrypointResources: is not JSON: "),
        (job(entrypointResources="[1]"), 'spec.entrypointResources: must be a JSON object such as {"name": 1}'),
        (job(entrypointResources=r'{"\ud800": 1}'), "spec.entrypointResources: has a name with half of"),
        (job(entrypointResources='{"a": "1"}'), 'spec.entrypointResources[a]: must be a number from 0 up, got "1"'),
        (job(entrypointResources='{"a": -1}'), "spec.entrypointResources[a]: must be a number from 0 up, got -1"),
        (
            job(submitterPodTemplate={"spec": {"restartPolicy": "Always"}}),
            "spec.submitterPodTemplate.spec.restartPolicy: must be Never or OnFailure in a Job, not Always",
        ),
        (
            job(submitterPodTemplate={"metadata": {"labels": {"a": "b c"}}}),
            'spec.submitterPodTemplate.metadata.labels[a]: "b c" is no valid label value',
        ),
        (
            job(submitterPodTemplate={"metadata": {"finalizers": ["example.com/mine", "bad"]}}),
            'spec.submitterPodTemplate.metadata.finalizers[1]: "bad" can\'t be a finalizer of a pod; write exam',
        ),
        (
            job(submitterPodTemplate={"metadata": {"finalizers": ["orphan", "foregroundDeletion"]}}),
            "spec.submitterPodTemplate.metadata.finalizers: can't have both foregroundDeletion and orphan",
        ),
        (
            job(submitterPodTemplate={"spec": {"containers": [{"image": "mine"}]}}),
            "spec.submitterPodTemplate.spec.containers[0].name: is required",
        ),
        (
            job(submitterPodTemplate={"spec": {"containers": [{"name": "s", "resources": {"limits": {"cpu": "x"}}}]}}),
            'spec.submitterPodTemplate.spec.containers[0].resources.limits[cpu]: "x" is not a quantity',
        ),
    ],
)
def test_each_rule_names_its_field_and_says_what_to_do(obj: Json, problem: str) -> None:
    (told,) = problems(obj)
    assert told.startswith(problem)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            [(["spec", "workerGroupSpecs", 0, "minReplicas"], 9)],
            "spec.rayClusterSpec.workerGroupSpecs[0].minReplicas: 9 is more than maxReplicas, 5",
        ),
        (
            [(["spec", "headGroupSpec", "template"], {})],
            "spec.rayClusterSpec.headGroupSpec.template.spec.containers: must have at least one container",
        ),
        (
            [(["spec", "headGroupSpec", "template", "spec", "restartPolicy"], "Always")],
            "spec.rayClusterSpec.headGroupSpec.template.spec.restartPolicy: must be Never in SidecarMode, not Always",
        ),
        (
            [(["spec", "headGroupSpec", "template", "spec", "initContainers"], [{"name": "ray-job-submitter"}])],
            "spec.rayClusterSpec.headGroupSpec.template.spec.initContainers[0].name: ray-job-submitter is the sub",
        ),
        (
            [(["spec", "upgradeStrategy"], {"type": "None"})],
            "spec.rayClusterSpec.upgradeStrategy: is not allowed in a cluster of a RayJob",
        ),
    ],
)
def test_the_cluster_in_the_job_is_held_to_the_rules_for_clusters_and_sidecars(fields: Any, problem: str) -> None:
    (told,) = problems(job(rayClusterSpec=with_fields(*fields)["spec"], submissionMode="SidecarMode"))
    assert told.startswith(problem)


def test_a_message_about_broken_yaml_does_not_repeat_what_may_be_secret() -> None:
    (told,) = problems(job(runtimeEnvYAML="env_vars: {TOKEN: hunter2, OTHER: ]"))
    assert "hunter2" not in told
    assert "line 1, column 35" in told, told


def test_the_annotations_of_the_job_count_for_its_cluster() -> None:
    annotated = job({"annotations": {"ray.io/ft-enabled": "true"}})
    assert problems(annotated) == []
    annotated["spec"]["rayClusterSpec"]["gcsFaultToleranceOptions"] = {"redisAddress": "redis:6379"}
    (told,) = problems(annotated)
    assert told.startswith("metadata.annotations[ray.io/ft-enabled]: says the same thing as gcsFaultToleranceOptions")


def test_the_head_service_of_its_cluster_has_another_name_than_that_of_the_job() -> None:
    written = job()
    written["spec"]["rayClusterSpec"]["headGroupSpec"]["headService"] = {"metadata": {"name": "demo-job-head-svc"}}
    assert problems(written) == [
        'spec.rayClusterSpec.headGroupSpec.headService.metadata.name: "demo-job-head-svc" is the name of the service '
        "that the RayJob itself has; choose another"
    ]


def test_a_job_without_a_spec_is_told_what_it_lacks() -> None:
    assert problems({"metadata": {"name": "demo-job"}}) == [
        "spec.rayClusterSpec: is required; describe the cluster to run on",
        NOTHING_TO_RUN,
    ]
