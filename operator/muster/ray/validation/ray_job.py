"""The rules for a RayJob, in the order in which problems are told."""

from __future__ import annotations

from collections.abc import Callable

from muster.api.errors import FieldProblem
from muster.api.rayjob import RayJob, SubmissionMode
from muster.ray import labels, names
from muster.ray.selection import runs_elsewhere, selected_cluster
from muster.ray.submitter import CONTAINER
from muster.ray.validation import authentication, deletion, groups, metadata, pods, program
from muster.ray.validation.ray_cluster import cluster_spec_problems
from muster.ray.validation.view import ClusterView, Problems, Template

JobRule = Callable[[RayJob], Problems]

_SUBMITTER_RESTARTS = (None, "", "Never", "OnFailure")


def validate_ray_job(job: RayJob) -> list[FieldProblem]:
    """Everything that is wrong with the job and the cluster in it; paths start with `metadata` or `spec`."""
    return [problem for rule in JOB_RULES for problem in rule(job)]


def name(job: RayJob) -> Problems:
    """The name leaves room for the cluster that is named after the job."""
    yield from metadata.name(job.metadata, names.MAX_RAY_JOB_NAME)


def placement_labels(job: RayJob) -> Problems:
    """Queue, priority and topology."""
    yield from metadata.placement_labels(job.metadata)


def fail_fast(job: RayJob) -> Problems:
    """A switch is on or off."""
    value = job.metadata.annotations.get(labels.FAIL_FAST)
    if value not in (None, "true", "false"):
        yield FieldProblem(f"metadata.annotations[{labels.FAIL_FAST}]", f'must be "true" or "false", not "{value}"')


def submission_mode(job: RayJob) -> Problems:
    """The mode is one that exists."""
    if job.spec.mode not in set(SubmissionMode):
        text = f'"{job.spec.mode}" is no submission mode; use {", ".join(SubmissionMode)}'
        yield FieldProblem("spec.submissionMode", text)


def sidecar(job: RayJob) -> Problems:
    """A submitter in the head pod has no template of its own, and neither it nor the head is started again."""
    if job.spec.mode != SubmissionMode.SIDECAR:
        return
    for field, written in (
        ("submitterPodTemplate", job.spec.submitter_pod_template),
        ("submitterConfig", job.spec.submitter_config),
    ):
        if written is not None:
            yield FieldProblem(f"spec.{field}", "is not possible in SidecarMode; leave it out, or use K8sJobMode")
    if job.spec.ray_cluster_spec is None:
        return
    path = "spec.rayClusterSpec.headGroupSpec.template"
    head = Template.read(job.spec.ray_cluster_spec.head_group_spec.template, path).parsed
    restart = head.spec.restart_policy if head.spec else None
    if restart not in (None, "", "Never"):
        yield FieldProblem(f"{path}.spec.restartPolicy", f"must be Never in SidecarMode, not {restart}")
    for kind, containers in (("containers", head.containers), ("initContainers", head.init_containers)):
        for index, container in enumerate(containers):
            if container.name == CONTAINER:
                text = f"{CONTAINER} is the submitter's in SidecarMode; give this container another name"
                yield FieldProblem(f"{path}.spec.{kind}[{index}].name", text)


def cluster(job: RayJob) -> Problems:
    """There is a cluster to run on, and its spec makes sense."""
    spec = job.spec.ray_cluster_spec
    if spec is None:
        if not runs_elsewhere(job):
            yield FieldProblem("spec.rayClusterSpec", "is required; describe the cluster to run on")
        return
    view = ClusterView.of(
        spec,
        path="spec.rayClusterSpec",
        cluster_name=names.generated(job.metadata.name, "xxxxx"),
        annotations=job.metadata.annotations,
        originated_from=RayJob.definition.kind,
        ray_job=job.metadata.name,
    )
    yield from cluster_spec_problems(view)


def cluster_selector(job: RayJob) -> Problems:
    """A cluster that others made is named, and the job needs nothing of it that only its own could give."""
    if not runs_elsewhere(job):
        return
    name, path = selected_cluster(job), f"spec.clusterSelector[{labels.CLUSTER}]"
    if name is None:
        yield FieldProblem(path, "is required; name the RayCluster to run on")
    elif not metadata.is_subdomain(name):
        yield FieldProblem(path, f'"{name}" can\'t be the name of a RayCluster')
    if job.spec.mode == SubmissionMode.SIDECAR:
        yield FieldProblem("spec.submissionMode", "SidecarMode needs a cluster of the job's own, not clusterSelector")
    if (job.spec.backoff_limit or 0) > 0:
        text = "can't be combined with clusterSelector: each attempt needs a new cluster; leave it out"
        yield FieldProblem("spec.backoffLimit", text)
    if job.spec.suspend and job.spec.job_id:
        text = "can't be combined with clusterSelector and jobId: Ray takes an id only once; leave jobId out"
        yield FieldProblem("spec.suspend", text)


def suspension(job: RayJob) -> Problems:
    """Suspending takes the job's own cluster away, so that the job has to let go of it."""
    if job.spec.suspend and not (job.spec.shutdown_after_job_finishes or _has_rules(job) or runs_elsewhere(job)):
        yield FieldProblem("spec.suspend", "needs shutdownAfterJobFinishes: true; set it, or leave suspend false")


def _has_rules(job: RayJob) -> bool:
    return job.spec.deletion_strategy is not None and bool(job.spec.deletion_strategy.deletion_rules)


def time_to_live(job: RayJob) -> Problems:
    """A time to live says when the cluster is shut down, so that something must shut it down."""
    seconds = job.spec.ttl_seconds_after_finished or 0
    if seconds < 0:
        yield FieldProblem("spec.ttlSecondsAfterFinished", f"must not be negative, got {seconds}")
    if seconds > 0 and not job.spec.shutdown_after_job_finishes:
        yield FieldProblem("spec.ttlSecondsAfterFinished", "needs shutdownAfterJobFinishes: true; set it too")


def deadlines(job: RayJob) -> Problems:
    """A deadline lies ahead."""
    for field, seconds in (
        ("activeDeadlineSeconds", job.spec.active_deadline_seconds),
        ("preRunningDeadlineSeconds", job.spec.pre_running_deadline_seconds),
    ):
        if seconds is not None and seconds <= 0:
            yield FieldProblem(f"spec.{field}", f"must be more than 0, got {seconds}; leave it out for no deadline")


def backoff_limits(job: RayJob) -> Problems:
    """Numbers of retries."""
    submitter = job.spec.submitter_config
    for field, limit in (
        ("backoffLimit", job.spec.backoff_limit),
        ("submitterConfig.backoffLimit", submitter.backoff_limit if submitter else None),
    ):
        if limit is not None and limit < 0:
            yield FieldProblem(f"spec.{field}", f"must not be negative, got {limit}")
    if job.spec.mode == SubmissionMode.INTERACTIVE and (job.spec.backoff_limit or 0) > 0:
        text = "can't be combined with InteractiveMode: nobody else can submit the job again; leave it out"
        yield FieldProblem("spec.backoffLimit", text)


def submitter_template(job: RayJob) -> Problems:
    """The submitter's template can be built on, and a Job takes it."""
    if job.spec.submitter_pod_template is None:
        return
    template = Template.read(job.spec.submitter_pod_template, "spec.submitterPodTemplate")
    yield from template.problems
    yield from groups.template_labels(template)
    yield from pods.template_finalizers(template)
    yield from pods.template_quantities(template)
    restart = template.parsed.spec.restart_policy if template.parsed.spec else None
    if restart not in _SUBMITTER_RESTARTS:
        path = f"{template.path}.spec.restartPolicy"
        yield FieldProblem(path, f"must be Never or OnFailure in a Job, not {restart}")


JOB_RULES: tuple[JobRule, ...] = (
    name,
    placement_labels,
    fail_fast,
    submission_mode,
    sidecar,
    cluster,
    authentication.no_kubernetes_tokens,
    cluster_selector,
    suspension,
    deletion.deletion_strategy,
    time_to_live,
    deadlines,
    backoff_limits,
    program.entrypoint,
    program.job_id,
    program.runtime_environment,
    program.entrypoint_amounts,
    program.entrypoint_resources,
    program.submission_length,
    submitter_template,
)
