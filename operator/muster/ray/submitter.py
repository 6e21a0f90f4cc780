"""The Kubernetes Job that submits a RayJob: one small pod that runs `muster submit`.

What the user wrote reaches it as one JSON document in an environment variable; nothing is pasted into a shell. The pod
is a member of the gang (role `submittergroup`), so the scheduler keeps a place for it beside the pods of its cluster.
A `submitterPodTemplate` is honoured as the base: with a command of its own it is run as it is; without one it runs
ours, in Muster's image.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from muster.api.rayjob import RayJob
from muster.ray import labels, names
from muster.ray.gang_membership import GangMembership
from muster.ray.job_info import Submission
from muster.ray.owner import owner_reference
from muster.ray.runtime_env import RuntimeEnvError, read_runtime_env
from muster.ray.submitter_exit import SubmitterExit

Manifest = dict[str, Any]

COMMAND: Final = ["muster", "submit"]
CONTAINER: Final = "ray-job-submitter"
DEFAULT_BACKOFF_LIMIT: Final = 2
_REQUESTS: Final = {"cpu": "50m", "memory": "64Mi"}
_LIMITS: Final = {"cpu": "500m", "memory": "256Mi"}
_USER_ID: Final = 65532
_NOBODY: Final = {
    "runAsNonRoot": True,
    "runAsUser": _USER_ID,
    "runAsGroup": _USER_ID,
    "seccompProfile": {"type": "RuntimeDefault"},
}
LONGEST_SUBMISSION: Final = 130_000
"""Linux starts no program with a longer variable than 128 KiB, its name included."""


def submission(job: RayJob, submission_id: str) -> Submission:
    """What Ray is asked to run. Raises ValueError when runtimeEnvYAML or entrypointResources can't be read."""
    spec = job.spec
    return Submission(
        submission_id=submission_id,
        entrypoint=(spec.entrypoint or "").strip(),
        runtime_env=_runtime_env(spec.runtime_env_yaml),
        metadata=dict(spec.metadata or {}),
        entrypoint_num_cpus=max(0, spec.entrypoint_num_cpus or 0),
        entrypoint_num_gpus=max(0, spec.entrypoint_num_gpus or 0),
        entrypoint_resources=_entrypoint_resources(spec.entrypoint_resources),
    )


def submitter_job(
    job: RayJob,
    *,
    image: str,
    dashboard_address: str,
    submission_id: str,
    gang: GangMembership | None = None,
    image_pull_policy: str | None = None,
    token_env: Sequence[Mapping[str, Any]] = (),
) -> Manifest:
    """The Job, named as its RayJob.

    `image` is Muster's own. `dashboard_address` is host:port without a scheme; `token_env` leads to the token that it
    asks for, if any. Raises ValueError as `submission_env` does.
    """
    template = submitter_template(job, image=image, gang=gang, image_pull_policy=image_pull_policy)
    container = template["spec"]["containers"][0]
    own = container.get("env") or []
    named = {variable.get("name") for variable in own}
    container["env"] = [
        *own,
        *submission_env(job, submission_id, dashboard_address),
        *(dict(variable) for variable in token_env if variable["name"] not in named),
    ]
    spec: dict[str, Any] = {"backoffLimit": _backoff_limit(job), "template": template}
    if container.get("command") == COMMAND and template["spec"]["restartPolicy"] == "Never":
        spec["podFailurePolicy"] = _failure_policy(container["name"])
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": names.submitter_job(job.metadata.name),
            "namespace": job.metadata.namespace,
            "labels": _labels(job),
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


def submission_env(job: RayJob, submission_id: str, dashboard_address: str) -> list[dict[str, Any]]:
    """The variables by which `muster submit` knows what to submit, and where.

    Raises ValueError as `submission` does, and for a submission that is too long for an environment variable.
    """
    document = submission(job, submission_id).to_json()
    if len(document) > LONGEST_SUBMISSION:
        raise ValueError(
            f"entrypoint, runtimeEnvYAML and metadata are {len(document)} bytes long together, "
            f"more than the {LONGEST_SUBMISSION} that a submitter can be given; use submissionMode HTTPMode"
        )
    variables = {
        "PYTHONUNBUFFERED": "1",
        "RAY_DASHBOARD_ADDRESS": dashboard_address,
        "RAY_JOB_SUBMISSION_ID": submission_id,
        "MUSTER_SUBMISSION": document,
    }
    return [{"name": name, "value": value} for name, value in variables.items()]


def submitter_template(
    job: RayJob, *, image: str, gang: GangMembership | None = None, image_pull_policy: str | None = None
) -> Manifest:
    """The submitter's pod template, without the variables that only a started cluster knows.

    The scheduler's view of the pod (resources, selectors, tolerations) is complete.
    """
    base: Manifest = copy.deepcopy(job.spec.submitter_pod_template or {})
    metadata, spec = base.get("metadata") or {}, base.get("spec") or {}
    containers = spec.get("containers") or [{"name": CONTAINER}]
    spec["containers"] = containers
    spec["restartPolicy"] = spec.get("restartPolicy") or "Never"
    if not containers[0].get("command"):
        _run_muster(spec, containers[0], image, image_pull_policy)
    template = {"metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **_labels(job)}}, "spec": spec}
    if gang is not None:
        gang.join(template, labels.SUBMITTER_GROUP)
    return template


def _run_muster(spec: dict[str, Any], container: dict[str, Any], image: str, image_pull_policy: str | None) -> None:
    """Run our command with as few rights as it needs; what the template says about rights and resources wins."""
    container |= submitter_container(container, image, image_pull_policy)
    container.pop("args", None)
    if spec.get("automountServiceAccountToken") is None:
        spec["automountServiceAccountToken"] = False
    spec["securityContext"] = {**_NOBODY, **(spec.get("securityContext") or {})}


def submitter_container(
    container: Mapping[str, Any], image: str, image_pull_policy: str | None, *, alone: bool = True
) -> dict[str, Any]:
    """The container that runs `muster submit`; what it says about rights and resources already wins.

    `alone` says that its pod runs nothing else, and has no rights by itself.
    """
    rights = {
        **({} if alone else _NOBODY),
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    ours: dict[str, Any] = {"image": image, "command": list(COMMAND)}
    if image_pull_policy is not None:
        ours["imagePullPolicy"] = image_pull_policy
    return {
        **container,
        **ours,
        "resources": _resources(container.get("resources") or {}),
        "securityContext": {**rights, **(container.get("securityContext") or {})},
    }


def _resources(user: Mapping[str, Any]) -> dict[str, Any]:
    """Our small needs, or the user's; where those name no CPU or memory at all, our request fills in."""
    if not user:
        return {"requests": dict(_REQUESTS), "limits": dict(_LIMITS)}
    named = {**(user.get("limits") or {}), **(user.get("requests") or {})}
    missing = {name: amount for name, amount in _REQUESTS.items() if name not in named}
    return {**user, "requests": {**(user.get("requests") or {}), **missing}}


def _failure_policy(container: str) -> dict[str, Any]:
    """A verdict of Ray's ends the Job; a disruption of the pod does not count; anything else is tried again."""
    return {
        "rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {
                "action": "FailJob",
                "onExitCodes": {
                    "containerName": container,
                    "operator": "In",
                    "values": [SubmitterExit.JOB_FAILED.value],
                },
            },
        ]
    }


def _backoff_limit(job: RayJob) -> int:
    limit = job.spec.submitter_config.backoff_limit if job.spec.submitter_config else None
    return DEFAULT_BACKOFF_LIMIT if limit is None else limit


def _labels(job: RayJob) -> dict[str, str]:
    return {
        labels.ORIGINATED_FROM_NAME: job.metadata.name,
        labels.ORIGINATED_FROM_KIND: "RayJob",
        labels.CREATED_BY: labels.OPERATOR,
    }


def _runtime_env(text: str | None) -> dict[str, Any]:
    try:
        return read_runtime_env(text)
    except RuntimeEnvError as error:
        raise ValueError(f"runtimeEnvYAML {error}") from None


def _entrypoint_resources(text: str | None) -> dict[str, Any]:
    if not (text or "").strip():
        return {}
    try:
        value = json.loads(text or "")
    except ValueError as error:
        raise ValueError(f"entrypointResources can't be read: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"entrypointResources must be a mapping, got {type(value).__name__}")
    return dict(value)
