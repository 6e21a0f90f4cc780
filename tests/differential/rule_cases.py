"""Small cases, one for each rule on names, services, labels, containers, autoscaling pods and submitters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.differential.manifests import Case, Manifest
from tests.integration.ray_manifests import cluster_spec, ray_cluster, ray_job, template, worker_group

_LONG = "a-cluster-with-a-name-of-fifty-three-characters-long-"[:52] + "x"
_OWN = {"name": "MINE", "value": "1"}


def rule_cases() -> list[Case]:
    """All cases; a name says what the rule is about."""
    return [
        *_clusters(_names()),
        *_clusters(_services()),
        *_clusters(_metadata()),
        *_clusters(_commands()),
        *_clusters(_containers()),
        *_clusters(_groups()),
        *_clusters(_options()),
        *_jobs(),
    ]


def _clusters(specs: Mapping[str, Manifest]) -> list[Case]:
    return [Case(f"rule: {name}", (manifest,)) for name, manifest in specs.items()]


def _names() -> dict[str, Manifest]:
    capitals = worker_group("Group-with-CAPITALS", 1)
    return {
        "a long cluster name": ray_cluster(_LONG, worker_group("a-long-group-name-of-thirty-letters", 1)),
        "a group name with capitals": ray_cluster("demo", capitals),
        "no workers": {**ray_cluster("demo"), "spec": cluster_spec() | {"workerGroupSpecs": []}},
        "two groups": ray_cluster("demo", worker_group("one", 1), worker_group("two", 2)),
    }


def _services() -> dict[str, Manifest]:
    own = {"metadata": {"name": "mine", "labels": {"a": "b", "ray.io/cluster": "x"}, "annotations": {"k": "own"}}}
    port = {"name": "extra", "port": 1234}
    return {
        "a head service of type NodePort": _head(serviceType="NodePort"),
        "a head service of type LoadBalancer": _head(serviceType="LoadBalancer"),
        "a head service of type ClusterIP": _head(serviceType="ClusterIP"),
        "annotations on the head service": _head(cluster={"headServiceAnnotations": {"a": "b"}}),
        "the user's head service": _head(headService={**own, "spec": {"ports": [port]}}),
        "the user's head service with a type": _head(headService={**own, "spec": {"type": "NodePort"}}),
        "the user's head service and serviceType": _head(headService={"spec": {}}, serviceType="NodePort"),
        "annotations over the user's head service": _head(
            headService=own, cluster={"headServiceAnnotations": {"k": "cluster", "j": "v"}}
        ),
        "ports of the head container": _head_container(
            ports=[{"containerPort": 6379, "name": "gcs-server"}, {"containerPort": 8265}]
        ),
        "a serve port of the head container": _head_container(ports=[{"containerPort": 8000, "name": "serve"}]),
        "another metrics port": _head_container(ports=[{"containerPort": 9090, "name": "metrics"}]),
        "labels of the head template that services select": _head(
            template=_labelled({"app.kubernetes.io/name": "mine", "ray.io/identifier": "other"})
        ),
    }


def _metadata() -> dict[str, Manifest]:
    metadata = {"labels": {"team": "a", "volcano.sh/queue-name": "q"}, "annotations": {"note": "x"}}
    identity = {"ray.io/cluster": "x", "ray.io/group": "x", "ray.io/node-type": "x", "ray.io/is-ray-node": "no"}
    return {
        "labels and annotations of the cluster": _with(ray_cluster("demo"), metadata=metadata),
        "labels of templates": _with(ray_cluster("demo", worker_group(template=_labelled({"a": "b"})))),
        "labels of templates that are the operator's": ray_cluster("demo", worker_group(template=_labelled(identity))),
        "labels of a group": ray_cluster("demo", worker_group(labels={"zone": "a", "tier": "b"}), rayVersion="2.52.0"),
        "resources of a group": ray_cluster(
            "demo", worker_group(resources={"CPU": "2", "memory": "1Gi", "GPU": "1", "special": "3"})
        ),
        "a priority class": _with(ray_cluster("demo"), metadata={"labels": {"ray.io/priority-class-name": "high"}}),
    }


def _commands() -> dict[str, Manifest]:
    overwrite = {"annotations": {"ray.io/overwrite-container-cmd": "true"}}
    return {
        "a command that runs first": _head_container(command=["echo"], args=["hello", "world"]),
        "a command that starts Ray": _head_container(command=["bash", "-c"], args=["ray start --head --block"]),
        "a command that overwrites": _with(_head_container(command=["sleep"], args=["9"]), metadata=overwrite),
        "flags with true and false": _head(
            rayStartParams={"a": "true", "b": "false", "log-color": "false", "include-dashboard": "true"}
        ),
        "a port of the control service": _head(rayStartParams={"port": "6380"}),
        "parameters that are set": _head(
            rayStartParams={
                "num-cpus": "0",
                "dashboard-host": "127.0.0.1",
                "metrics-export-port": "9",
                "block": "false",
            }
        ),
        "an agent port": _head(rayStartParams={"dashboard-agent-listen-port": "52366"}),
        "resources in the parameters": _head(rayStartParams={"resources": "'{\"special\": 1}'"}),
        "a limit of half a CPU": _head_container(resources={"limits": {"cpu": "500m", "memory": "1500M"}}),
        "requests alone": _head_container(resources={"requests": {"cpu": "1500m", "memory": "1Gi"}}),
        "no resources": _head_container(resources={}),
        "GPUs": _head_container(resources={"limits": {"nvidia.com/gpu": 2, "amd.com/gpu": 1}}),
        "a slice of a GPU": _head_container(resources={"limits": {"nvidia.com/mig-1g.5gb": 1}}),
        "Neuron cores": _head_container(resources={"limits": {"aws.amazon.com/neuroncore": 4}}),
        "TPUs": _head_container(resources={"limits": {"google.com/tpu": 4}}),
    }


def _containers() -> dict[str, Manifest]:
    probe = {"exec": {"command": ["true"]}}
    two = template()
    two["spec"]["containers"].append({"name": "side", "image": "side"})
    wait = {"name": "mine", "image": "x", "env": [_OWN]}
    shared = template(volumes=[{"name": "mine", "emptyDir": {}}])
    shared["spec"]["containers"][0]["volumeMounts"] = [{"name": "mine", "mountPath": "/dev/shm"}]
    worker = template(initContainers=[wait])
    worker["spec"]["containers"][0] |= {"securityContext": {"runAsUser": 7}, "imagePullPolicy": "Never"}
    return {
        "variables": _head_container(
            env=[_OWN, {"name": "RAY_ADDRESS", "value": "x"}, {"name": "RAY_PORT", "value": ""}]
        ),
        "variables of workers": ray_cluster("demo", worker_group(template=_container(env=[_OWN]))),
        "probes": _head_container(livenessProbe=probe, readinessProbe=probe),
        "probes of an old Ray": _head(cluster={"rayVersion": "2.9.0"}),
        "probes of an unknown Ray": _head(cluster={"rayVersion": "nightly"}),
        "two containers": _head(template=two),
        "init containers of workers": ray_cluster("demo", worker_group(template=worker)),
        "init containers of the head": _head(template=template(initContainers=[wait])),
        "shared memory of the user's": _head(template=shared),
        "a plasma directory": _head(rayStartParams={"plasma-directory": "/tmp"}),
        "shared memory by the limit": _head_container(
            resources={"limits": {"memory": "2G"}, "requests": {"memory": "1G"}}
        ),
        "restart policies": ray_cluster("demo", worker_group(template=template(restartPolicy="Never"))),
    }


def _groups() -> dict[str, Manifest]:
    return {
        "replicas above the maximum": ray_cluster("demo", worker_group(replicas=5, maxReplicas=2)),
        "replicas below the minimum": ray_cluster("demo", worker_group(replicas=0, minReplicas=2)),
        "a group without replicas": ray_cluster("demo", _without(worker_group(), "replicas")),
        "several hosts": ray_cluster("demo", worker_group("hosts", 2, numOfHosts=2), worker_group("one", 1)),
        "a suspended cluster": ray_cluster("demo", suspend=True),
        "managed by somebody else": ray_cluster("demo", managedBy="kueue.x-k8s.io/multikueue"),
        "a name that is too long": ray_cluster("a" * 54),
        "a minimum above the maximum": ray_cluster("demo", worker_group(minReplicas=3, maxReplicas=1)),
    }


def _options() -> dict[str, Manifest]:
    served = {"annotations": {"ray.io/enable-serve-service": "true"}}
    ingress = {"annotations": {"kubernetes.io/ingress.class": "nginx", "nginx.ingress.kubernetes.io/rewrite": "/"}}
    serving = [{"containerPort": 8000, "name": "serve"}, {"containerPort": 6379, "name": "gcs"}]
    options = {"idleTimeoutSeconds": 5, "resources": {"limits": {"cpu": "1"}}, "env": [_OWN]}
    return {
        "autoscaling": ray_cluster("demo", enableInTreeAutoscaling=True),
        "autoscaling of version 2": ray_cluster(
            "demo", enableInTreeAutoscaling=True, autoscalerOptions={**options, "version": "v2"}
        ),
        "an ingress": _with(_head(enableIngress=True), metadata=ingress),
        "the serve service": _with(_head_container(ports=serving), metadata=served),
    }


def _jobs() -> list[Case]:
    submitter = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [_plain()]}}
    own = {
        "spec": {"restartPolicy": "OnFailure", "containers": [{**_plain(), "command": ["submit-it"], "args": ["x"]}]}
    }
    cluster = cluster_spec()
    served = cluster_spec(headGroupSpec={"template": template(), "headService": {"metadata": {"name": "mine"}}})
    jobs = {
        "a job": ray_job("demo"),
        "a job that fails": ray_job("demo", "fail", submissionMode="HTTPMode"),
        "a job over HTTP": ray_job("demo", submissionMode="HTTPMode"),
        "a job with an id": ray_job("demo", jobId="my-id"),
        "a job with labels": _with(ray_job("demo"), metadata={"labels": {"team": "a"}, "annotations": {"note": "x"}}),
        "a job that shuts its cluster down": ray_job("demo", shutdownAfterJobFinishes=True),
        "a job that shuts its cluster down later": ray_job(
            "demo", shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=3600
        ),
        "a job that is suspended": ray_job("demo", suspend=True, shutdownAfterJobFinishes=True),
        "a job with an environment": ray_job("demo", runtimeEnvYAML="env_vars:\n  A: '1'\n", metadata={"k": "v"}),
        "a job with entrypoint resources": ray_job(
            "demo", entrypointNumCpus=1.5, entrypointNumGpus=1, entrypointResources='{"special": 1}'
        ),
        "a submitter template": ray_job("demo", submitterPodTemplate=submitter),
        "a submitter with its own command": ray_job("demo", submitterPodTemplate=own),
        "a submitter's retries": ray_job("demo", submitterConfig={"backoffLimit": 5}),
        "a job with the user's head service": ray_job("demo", rayClusterSpec=served),
        "a job with a head service of type NodePort": ray_job(
            "demo", rayClusterSpec=cluster_spec(headGroupSpec={"template": template(), "serviceType": "NodePort"})
        ),
        "a job managed by somebody else": ray_job("demo", managedBy="kueue.x-k8s.io/multikueue"),
        "a job whose name is too long": ray_job("a" * 48),
        "a job without a cluster": _with({**ray_job("demo"), "spec": {"entrypoint": "x"}}),
        "a job with a time to live alone": ray_job("demo", ttlSecondsAfterFinished=5, rayClusterSpec=cluster),
    }
    return _clusters(jobs)


def _plain() -> Manifest:
    return {"name": "mine", "image": "x", "env": [_OWN]}


def _head(*, cluster: Mapping[str, Any] | None = None, **group: Any) -> Manifest:
    """A cluster of one worker, whose head group has these fields."""
    head = {"rayStartParams": {}, "template": template(), **group}
    return ray_cluster("demo", worker_group(replicas=1), headGroupSpec=head, **(cluster or {}))


def _head_container(**container: Any) -> Manifest:
    """A cluster of one worker, whose head container has these fields."""
    return _head(template=_container(**container))


def _container(**container: Any) -> Manifest:
    made = template()
    made["spec"]["containers"][0] |= container
    return made


def _labelled(labels: Mapping[str, str]) -> Manifest:
    return {"metadata": {"labels": dict(labels), "annotations": {"note": "x"}}, **template()}


def _with(manifest: Manifest, metadata: Mapping[str, Any] | None = None) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], **(metadata or {})}}


def _without(group: Manifest, key: str) -> Manifest:
    return {name: value for name, value in group.items() if name != key}
