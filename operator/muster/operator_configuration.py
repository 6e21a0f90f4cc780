"""Reads the operator's configuration file: what all Ray pods get besides what their clusters' specs say.

The file is KubeRay's, so that a site can take its own along. What is in it is checked to the last field before anything
starts: a sidecar that no pod can have would keep every cluster from coming up. Fields of KubeRay's for which Muster has
an option are refused with that option's name, for nothing would come of them; those that mean nothing here are named in
the log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from muster.api.errors import FieldProblem, MalformedResource
from muster.api.operator_configuration import OperatorConfiguration
from muster.api.podtemplate import Container, EnvVar
from muster.ray import autoscaler
from muster.ray.every_pod import EveryPod
from muster.ray.validation import costly_amounts
from muster.ray.validation.groups import label_map
from muster.ray.validation.pods import quantities
from muster.yaml_documents import YamlError, yaml_documents

logger = logging.getLogger(__name__)

API_VERSION: Final = "config.ray.io/v1alpha1"
KIND: Final = "Configuration"

_HAVE_OPTIONS: Final = {
    "watchNamespace": "--watch-namespace",
    "enableLeaderElection": "--leader-election",
    "leaderElectionNamespace": "--namespace",
    "probeAddr": "--health-port",
    "batchScheduler": "--batch-scheduler",
    "enableBatchScheduler": "--batch-scheduler",
    "useKubernetesProxy": "--use-kubernetes-proxy",
    "deleteRayJobAfterJobFinishes": "--delete-finished-jobs",
}
_MEAN_NOTHING: Final = (
    "burst",
    "enableMetrics",
    "featureGates",
    "logFile",
    "logFileEncoder",
    "logStdoutEncoder",
    "metricsAddr",
    "qps",
    "reconcileConcurrency",
)


class OperatorConfigurationError(ValueError):
    """A file that can't be read, or that says what can't be. The text names file and fields."""


def read_operator_configuration(path: Path) -> EveryPod:
    """What the file says. Raises OperatorConfigurationError."""
    try:
        documents = [document for _, document in yaml_documents(path.read_bytes()) if document is not None]
    except (OSError, YamlError) as error:
        raise OperatorConfigurationError(f"{path}: {error}") from error
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise OperatorConfigurationError(f"{path}: has to be one document, a mapping of kind {KIND}")
    try:
        configuration = OperatorConfiguration.parse(documents[0])
    except MalformedResource as refusal:
        raise OperatorConfigurationError(f"{path}: {_in_words(refusal.problems)}") from refusal
    problems = list(_problems(configuration))
    if problems:
        raise OperatorConfigurationError(f"{path}: {_in_words(problems)}")
    for name in sorted((configuration.model_extra or {}).keys() & set(_MEAN_NOTHING)):
        logger.warning("%s: %s means nothing to Muster", path, name)
    return EveryPod(
        head_sidecars=tuple(configuration.head_sidecar_containers or ()),
        worker_sidecars=tuple(configuration.worker_sidecar_containers or ()),
        env=tuple(configuration.default_container_envs or ()),
        annotations=tuple(sorted((configuration.default_pod_annotations or {}).items())),
        labels=tuple(sorted((configuration.default_pod_labels or {}).items())),
    )


def _in_words(problems: Sequence[FieldProblem]) -> str:
    return "; ".join(map(str, problems))


def _problems(configuration: OperatorConfiguration) -> Iterator[FieldProblem]:
    for field, value, expected in (
        ("apiVersion", configuration.api_version, API_VERSION),
        ("kind", configuration.kind, KIND),
    ):
        if value != expected:
            yield FieldProblem(
                field, f'must be {expected}, not "{value}"' if value else f"is missing; it is {expected}"
            )
    for name in sorted(configuration.model_extra or {}):
        if name in _HAVE_OPTIONS:
            yield FieldProblem(name, f"is said by {_HAVE_OPTIONS[name]} of muster run; remove it here")
        elif name not in _MEAN_NOTHING:
            yield FieldProblem(name, "is no field of a Configuration; check its spelling")
    yield from _sidecars("headSidecarContainers", configuration.head_sidecar_containers or [])
    yield from _sidecars("workerSidecarContainers", configuration.worker_sidecar_containers or [])
    yield from _variables("defaultContainerEnvs", configuration.default_container_envs or [])
    yield from label_map(configuration.default_pod_labels or {}, "defaultPodLabels")
    # The keys of annotations are those of labels; their values are free.
    yield from label_map(dict.fromkeys(configuration.default_pod_annotations or {}, ""), "defaultPodAnnotations")


def _sidecars(field: str, containers: Sequence[Mapping[str, Any]]) -> Iterator[FieldProblem]:
    names = {autoscaler.CONTAINER}
    for index, written in enumerate(containers):
        path = f"{field}[{index}]"
        try:
            container = Container.parse(written)
        except MalformedResource as refusal:
            yield from (FieldProblem(f"{path}.{problem.path}", problem.message) for problem in refusal.problems)
            continue
        if container.name in names:
            yield FieldProblem(f"{path}.name", f'"{container.name}" is another container\'s name; choose another')
        names.add(container.name)
        if not container.image:
            yield FieldProblem(f"{path}.image", "is missing")
        if container.resources is not None:
            yield from quantities(container.resources.requests or {}, f"{path}.resources.requests")
            yield from quantities(container.resources.limits or {}, f"{path}.resources.limits")
        yield from costly_amounts.in_container({"env": written.get("env")}, path)


def _variables(field: str, variables: Sequence[Mapping[str, Any]]) -> Iterator[FieldProblem]:
    for index, written in enumerate(variables):
        path = f"{field}[{index}]"
        try:
            variable = EnvVar.parse(written)
        except MalformedResource as refusal:
            yield from (FieldProblem(f"{path}.{problem.path}", problem.message) for problem in refusal.problems)
            continue
        if not variable.name:
            yield FieldProblem(f"{path}.name", "must not be empty")
        if variable.value and variable.value_from:
            yield FieldProblem(f"{path}.valueFrom", "can't be given beside value; remove one of the two")
        yield from costly_amounts.in_env_source(variable.value_from or {}, f"{path}.valueFrom")
