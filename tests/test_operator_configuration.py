"""The operator's configuration file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from muster.operator_configuration import OperatorConfigurationError, read_operator_configuration
from muster.ray.every_pod import EveryPod

HEADER = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


def test_all_of_it_is_read(tmp_path: Path) -> None:
    text = """
headSidecarContainers:
  - {name: logs, image: fluent, resources: {limits: {cpu: 1, memory: 64Mi}}}
workerSidecarContainers:
  - {name: metrics, image: agent}
defaultContainerEnvs:
  - {name: PROXY, value: "http://proxy"}
  - {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
defaultPodAnnotations: {a: b}
defaultPodLabels: {team: ray}
"""
    assert read_operator_configuration(written(tmp_path, HEADER + text)) == EveryPod(
        head_sidecars=({"name": "logs", "image": "fluent", "resources": {"limits": {"cpu": 1, "memory": "64Mi"}}},),
        worker_sidecars=({"name": "metrics", "image": "agent"},),
        env=(
            {"name": "PROXY", "value": "http://proxy"},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ),
        annotations=(("a", "b"),),
        labels=(("team", "ray"),),
    )


def test_one_that_says_nothing_is_fine(tmp_path: Path) -> None:
    assert read_operator_configuration(written(tmp_path, HEADER)) == EveryPod()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [", "config.yaml: "),
        ("", "one document"),
        (HEADER + "---\n" + HEADER, "one document"),
        ("- a\n", "one document"),
        ("kind: Configuration\n", "apiVersion: is missing; it is config.ray.io/v1alpha1"),
        (HEADER.replace("Configuration", "ConfigMap"), 'kind: must be Configuration, not "ConfigMap"'),
        (HEADER + "defaultPodLabel: {}\n", "defaultPodLabel: is no field of a Configuration"),
        (HEADER + "watchNamespace: a\n", "watchNamespace: is said by --watch-namespace"),
        (HEADER + "batchScheduler: volcano\n", "batchScheduler: is said by --batch-scheduler"),
        (HEADER + "defaultPodLabels: {a: 1}\n", "defaultPodLabels[a]: must be a string"),
        (HEADER + "defaultPodLabels: {a: b c}\n", 'defaultPodLabels[a]: "b c" is no valid label value'),
        (HEADER + "defaultPodAnnotations: {a b: c}\n", "defaultPodAnnotations[a b]: is no valid label key"),
        (HEADER + "headSidecarContainers: {}\n", "headSidecarContainers: "),
        (HEADER + "headSidecarContainers: [{image: a}]\n", "headSidecarContainers[0].name: "),
        (HEADER + "headSidecarContainers: [{name: a}]\n", "headSidecarContainers[0].image: is missing"),
        (HEADER + "headSidecarContainers: [{name: a, image: b, env: x}]\n", "headSidecarContainers[0].env: "),
        (
            HEADER + "workerSidecarContainers: [{name: a, image: b}, {name: a, image: b}]\n",
            'workerSidecarContainers[1].name: "a" is another container\'s name',
        ),
        (
            HEADER + "headSidecarContainers: [{name: autoscaler, image: b}]\n",
            'headSidecarContainers[0].name: "autoscaler" is another container\'s name',
        ),
        (
            HEADER + "headSidecarContainers: [{name: a, image: b, resources: {requests: {cpu: much}}}]\n",
            'headSidecarContainers[0].resources.requests[cpu]: "much" is not a quantity',
        ),
        (HEADER + "defaultContainerEnvs: [{value: a}]\n", "defaultContainerEnvs[0].name: "),
        (HEADER + "defaultContainerEnvs: [{name: A, value: 1}]\n", "defaultContainerEnvs[0].value: "),
        (
            HEADER + "defaultContainerEnvs: [{name: A, value: a, valueFrom: {fieldRef: {fieldPath: x}}}]\n",
            "defaultContainerEnvs[0].valueFrom: can't be given beside value",
        ),
    ],
)
def test_what_can_not_be_is_refused_by_its_field(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(OperatorConfigurationError) as refusal:
        read_operator_configuration(written(tmp_path, text))
    assert "config.yaml" in str(refusal.value)
    assert complaint in str(refusal.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OperatorConfigurationError, match=r"none\.yaml"):
        read_operator_configuration(tmp_path / "none.yaml")


def test_what_means_nothing_here_is_named_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read_operator_configuration(written(tmp_path, HEADER + "reconcileConcurrency: 4\n"))
    assert "reconcileConcurrency means nothing to Muster" in caplog.text
