"""What a site's configuration puts into every Ray pod."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

from muster.ray.every_pod import EveryPod
from muster.ray.gang import gang_of
from muster.ray.pod_options import PodOptions
from muster.ray.pods import head_pod, worker_pod
from muster.ray.scheduling_request import scheduling_request
from tests.ray.ray_objects import ray_cluster, template, worker_group

HEAD_SIDECAR = {"name": "logs", "image": "fluent", "resources": {"requests": {"cpu": "250m"}}}
WORKER_SIDECAR = {"name": "metrics", "image": "agent", "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}}}


def pods(every_pod: EveryPod, head: Any = None, worker: Any = None, **cluster: Any) -> tuple[Any, Any]:
    made = ray_cluster(
        head={"template": head or template()}, workers=[worker_group(template=worker or template())], **cluster
    )
    options = PodOptions(every_pod=every_pod)
    return head_pod(made, "h", options=options), worker_pod(made, made.spec.worker_groups[0], "w", options=options)


def names(pod: Any) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


def test_sidecars_come_after_all_other_containers() -> None:
    sidecars = EveryPod(head_sidecars=(HEAD_SIDECAR,), worker_sidecars=(WORKER_SIDECAR,))
    head, worker = pods(sidecars, enableInTreeAutoscaling=True)
    assert names(head) == ["ray", "autoscaler", "logs"]
    assert names(worker) == ["ray", "metrics"]
    assert head["spec"]["containers"][-1] == HEAD_SIDECAR


def test_a_pod_has_its_own_copy_of_a_sidecar() -> None:
    before = copy.deepcopy(HEAD_SIDECAR)
    head, _ = pods(EveryPod(head_sidecars=(HEAD_SIDECAR,)))
    head["spec"]["containers"][-1]["resources"]["requests"]["cpu"] = "9"
    assert before == HEAD_SIDECAR


def test_the_gang_asks_for_the_sidecars_too() -> None:
    cluster = ray_cluster(workers=[worker_group(replicas=2)])
    options = PodOptions(every_pod=EveryPod(head_sidecars=(HEAD_SIDECAR,), worker_sidecars=(WORKER_SIDECAR,)))
    built = [head_pod(cluster, "h", options=options)]
    built += [worker_pod(cluster, cluster.spec.worker_groups[0], f"w{n}", options=options) for n in range(2)]
    total = sum((scheduling_request(pod["spec"]) for pod in built), Counter[str]())
    assert gang_of(cluster.spec, options=options).resources == total
    assert total["cpu"] > gang_of(cluster.spec).resources["cpu"]


def test_variables_fill_in_what_the_user_has_not_set() -> None:
    site = ({"name": "PROXY", "value": "site"}, {"name": "MINE", "value": "site"}, {"name": "RAY_PORT", "value": "1"})
    for pod in pods(
        EveryPod(env=site),
        head=template(env=[{"name": "MINE", "value": "user"}]),
        worker=template(env=[{"name": "MINE", "value": "user"}]),
    ):
        env = [(one["name"], one.get("value")) for one in pod["spec"]["containers"][0]["env"]]
        assert [value for name, value in env if name == "PROXY"] == ["site"]
        assert [value for name, value in env if name == "MINE"] == ["user"]
        assert [value for name, value in env if name == "RAY_PORT"] == ["1"]


def test_a_variable_that_tells_a_pod_who_it_is_stays_ours() -> None:
    head, _ = pods(EveryPod(env=({"name": "RAY_CLUSTER_NAME", "value": "site"},)))
    named = [one for one in head["spec"]["containers"][0]["env"] if one["name"] == "RAY_CLUSTER_NAME"]
    assert [one.get("value") for one in named] == [None]


def test_annotations_and_labels_give_way_to_the_users_and_to_the_fixed_ones() -> None:
    site = EveryPod(
        annotations=(("a", "site"), ("b", "site")),
        labels=(("a", "site"), ("b", "site"), ("ray.io/cluster", "site"), ("app.kubernetes.io/name", "site")),
    )
    mine = template(metadata={"annotations": {"b": "user"}, "labels": {"b": "user"}})
    for pod in pods(site, head=mine, worker=mine):
        annotations, labels = pod["metadata"]["annotations"], pod["metadata"]["labels"]
        assert (annotations["a"], annotations["b"]) == ("site", "user")
        assert (labels["a"], labels["b"]) == ("site", "user")
        # The head service selects by these.
        assert (labels["ray.io/cluster"], labels["app.kubernetes.io/name"]) == ("demo", "kuberay")


def test_a_site_without_a_configuration_changes_nothing() -> None:
    cluster = ray_cluster()
    assert head_pod(cluster, "h") == head_pod(cluster, "h", options=PodOptions(every_pod=EveryPod()))
