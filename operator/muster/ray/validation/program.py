"""What Ray is asked to run: the entrypoint, its runtime environment and its needs."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable
from typing import Final

from muster.api.errors import FieldProblem
from muster.api.rayjob import RayJob, SubmissionMode
from muster.ray import names
from muster.ray.runtime_env import RuntimeEnvError, read_runtime_env
from muster.ray.submitter import LONGEST_SUBMISSION, submission
from muster.ray.validation.view import Problems, Template

_NOT_IN_JOB_IDS: Final = ("Cc", "Cs", "Zl", "Zp")
"""Unicode's categories of control characters, halves of surrogate pairs, and separators of lines and paragraphs."""
LONGEST_JOB_ID: Final = 240
"""Bytes. Ray names the file of the job's log after it: a head fails with a longer id, or one with a slash."""


def job_id(job: RayJob) -> Problems:
    """jobId can be part of a URL and of a file's name, as Ray uses it."""
    if text := _wrong_with_job_id(job):
        yield FieldProblem("spec.jobId", text)


def _wrong_with_job_id(job: RayJob) -> str | None:
    wanted = job.spec.job_id or ""
    length = len(wanted.encode("utf-8", "replace"))
    if length > LONGEST_JOB_ID:
        return f"has {length} bytes, and Ray takes at most {LONGEST_JOB_ID}; shorten it or leave it out"
    if wanted in (".", ".."):
        return f'"{wanted}" leads to another place in a URL; use letters, digits, "-", "_" and "."'
    if "/" in wanted or any(unicodedata.category(character) in _NOT_IN_JOB_IDS for character in wanted):
        shown = json.dumps(wanted)
        return f'{shown} has a slash or a control character; use letters, digits, "-", "_" and "."'
    return None


def entrypoint(job: RayJob) -> Problems:
    """There is something to run: Ray takes an empty command, and says that it succeeded."""
    if (job.spec.entrypoint or "").strip() or job.spec.mode == SubmissionMode.INTERACTIVE or _submits_itself(job):
        return
    yield FieldProblem("spec.entrypoint", "is required; write the command that Ray is to run")


def _submits_itself(job: RayJob) -> bool:
    """Whether the user's own command submits the job, as in KubeRay's sample `ray-job.light-weight-submitter`."""
    if job.spec.mode != SubmissionMode.K8S_JOB:
        return False
    template = Template.read(job.spec.submitter_pod_template or {}, "spec.submitterPodTemplate")
    first = template.parsed.containers[:1]
    return not template.sound or any(container.command for container in first)


def runtime_environment(job: RayJob) -> Problems:
    """runtimeEnvYAML is a YAML mapping that JSON can carry."""
    try:
        read_runtime_env(job.spec.runtime_env_yaml)
    except RuntimeEnvError as error:
        yield FieldProblem("spec.runtimeEnvYAML", str(error))


def entrypoint_amounts(job: RayJob) -> Problems:
    """What the entrypoint needs on its node: amounts from 0 up."""
    for field, amount in (
        ("entrypointNumCpus", job.spec.entrypoint_num_cpus),
        ("entrypointNumGpus", job.spec.entrypoint_num_gpus),
    ):
        if amount is not None and not (math.isfinite(amount) and amount >= 0):
            yield FieldProblem(f"spec.{field}", f"must be a number from 0 up, got {amount}")


def entrypoint_resources(job: RayJob) -> Problems:
    """entrypointResources is a JSON object of amounts."""
    text = job.spec.entrypoint_resources
    if text is None or not text.strip():
        return
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield FieldProblem("spec.entrypointResources", f'is not JSON: {error}; write {{"name": amount}}')
        return
    if not isinstance(document, dict):
        yield FieldProblem("spec.entrypointResources", 'must be a JSON object such as {"name": 1}')
        return
    if not _can_be_sent(document):
        yield FieldProblem("spec.entrypointResources", "has a name with half of a surrogate pair; correct its escapes")
        return
    for resource, amount in document.items():
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            path = f"spec.entrypointResources[{resource}]"
            yield FieldProblem(path, f"must be a number from 0 up, got {json.dumps(amount)}")


def _can_be_sent(names: Iterable[str]) -> bool:
    """Whether the names are text: JSON's escapes can say what no UTF-8 can."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        return False
    return True


def submission_length(job: RayJob) -> Problems:
    """What a submitter has to carry fits into the variable that carries it; HTTPMode has no such limit."""
    if job.spec.mode not in (SubmissionMode.K8S_JOB, SubmissionMode.SIDECAR):
        return
    try:
        stand_in = "x" * names.MAX_RAY_CLUSTER_NAME
        wanted = stand_in if _wrong_with_job_id(job) else job.spec.job_id or stand_in
        length = len(submission(job, wanted).to_json())
    except (ValueError, RecursionError):  # its parts have rules of their own
        return
    if length > LONGEST_SUBMISSION:
        text = (
            f"is too long with runtimeEnvYAML and metadata: {length} bytes, at most {LONGEST_SUBMISSION} can be given"
        )
        yield FieldProblem("spec.entrypoint", f"{text} to a submitter pod; shorten them or use submissionMode HTTPMode")
