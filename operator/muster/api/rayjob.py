"""RayJob (ray.io/v1): a Ray program, the cluster that it runs on, and what happens when it is done."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from muster.api.fieldtypes import Int32, PodTemplate, Timestamp
from muster.api.job_status import JobStatus
from muster.api.metadata import ObjectMeta
from muster.api.model import Model, Resource
from muster.api.raycluster import ManagedBy, RayClusterSpec, RayClusterStatus
from muster.api.schema import Column, Definition, Rule, Schema

__all__ = [
    "DeletionCondition",
    "DeletionPolicy",
    "DeletionRule",
    "DeletionStrategy",
    "JobDeploymentStatus",
    "JobFailedReason",
    "JobStatus",
    "RayJob",
    "RayJobInfo",
    "RayJobSpec",
    "RayJobStatus",
    "SubmissionMode",
    "SubmitterConfig",
]


class SubmissionMode(StrEnum):
    """How the Ray job gets to the cluster."""

    K8S_JOB = "K8sJobMode"
    HTTP = "HTTPMode"
    INTERACTIVE = "InteractiveMode"
    SIDECAR = "SidecarMode"


class JobDeploymentStatus(StrEnum):
    """The state of the RayJob as a whole."""

    NEW = ""
    INITIALIZING = "Initializing"
    WAITING = "Waiting"
    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"
    VALIDATION_FAILED = "ValidationFailed"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    RETRYING = "Retrying"

    @property
    def terminal(self) -> bool:
        """True for Complete and Failed."""
        return self in (JobDeploymentStatus.COMPLETE, JobDeploymentStatus.FAILED)


class JobFailedReason(StrEnum):
    """`status.reason` of a RayJob."""

    SUBMISSION_FAILED = "SubmissionFailed"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    PRE_RUNNING_DEADLINE_EXCEEDED = "PreRunningDeadlineExceeded"
    APP_FAILED = "AppFailed"
    TRANSITION_GRACE_PERIOD_EXCEEDED = "JobDeploymentStatusTransitionGracePeriodExceeded"
    STATUS_CHECK_TIMEOUT_EXCEEDED = "JobStatusCheckTimeoutExceeded"
    VALIDATION_FAILED = "ValidationFailed"


DELETION_POLICIES = ("DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone")


class DeletionPolicy(Model):
    """What to delete when the job ended one way (the older form of deletionStrategy)."""

    policy: Annotated[str | None, Schema(enum=DELETION_POLICIES)] = None


class DeletionCondition(Model):
    """When a rule applies: one of the two statuses, and how long ago it came."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!(has(self.jobStatus) && has(self.jobDeploymentStatus))",
            "jobStatus and jobDeploymentStatus can't both be set; keep one",
        ),
        Rule(
            "has(self.jobStatus) || has(self.jobDeploymentStatus)",
            "one of jobStatus and jobDeploymentStatus must be set",
        ),
    )

    job_status: Annotated[str | None, Schema(enum=("SUCCEEDED", "FAILED"))] = None
    job_deployment_status: Annotated[str | None, Schema(enum=("Failed",))] = None
    ttl_seconds: Annotated[Int32 | None, Schema(default=0, minimum=0)] = None


class DeletionRule(Model):
    """Delete `policy` once `condition` holds."""

    policy: Annotated[str, Schema(enum=DELETION_POLICIES)]
    condition: DeletionCondition


class DeletionStrategy(Model):
    """What happens to the cluster, its workers and the RayJob itself after the end."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!((has(self.onSuccess) || has(self.onFailure)) && has(self.deletionRules))",
            "onSuccess and onFailure can't be combined with deletionRules; use deletionRules alone",
        ),
        Rule(
            "(has(self.onSuccess) && has(self.onFailure)) || has(self.deletionRules)",
            "set deletionRules, or both onSuccess and onFailure",
        ),
    )

    on_success: DeletionPolicy | None = None
    on_failure: DeletionPolicy | None = None
    deletion_rules: Annotated[list[DeletionRule] | None, Schema(min_items=1, list_type="atomic")] = None


class SubmitterConfig(Model):
    """Settings of the submitter's Kubernetes Job."""

    backoff_limit: Int32 | None = None


class RayJobSpec(Model):
    """What the user asks for."""

    meanings: ClassVar[Mapping[str, str]] = {
        "entrypoint": "The command that Ray runs.",
        "runtime_env_yaml": "The runtime environment of the job, in Ray's words, as YAML.",
        "job_id": "The id of the job in Ray; made up if not given. In InteractiveMode the user says it.",
        "metadata": "Metadata of the job in Ray.",
        "entrypoint_num_cpus": "CPUs that Ray keeps for the entrypoint itself.",
        "entrypoint_num_gpus": "GPUs that Ray keeps for the entrypoint itself.",
        "entrypoint_resources": "Custom resources that Ray keeps for the entrypoint itself: a JSON object.",
        "submission_mode": "Who submits: K8sJobMode (a Job), HTTPMode (the operator), SidecarMode (a container of the "
        "head pod), InteractiveMode (the user).",
        "ray_cluster_spec": "The cluster that is made for the job.",
        "cluster_selector": "Chooses a RayCluster that is there already, in place of rayClusterSpec.",
        "submitter_pod_template": "The pod of the submitter, in K8sJobMode.",
        "backoff_limit": "How often the job is tried again when it has failed, each time on a new cluster.",
        "active_deadline_seconds": "Seconds after which the job fails if it has not ended.",
        "pre_running_deadline_seconds": "Seconds after which an attempt fails if it does not run yet.",
        "ttl_seconds_after_finished": "Seconds from the end of the job to what shutdownAfterJobFinishes deletes.",
        "shutdown_after_job_finishes": "Whether the cluster is deleted when the job has ended.",
        "suspend": "Whether the job is to hold nothing: its cluster is deleted, and made again when this is false.",
        "managed_by": "Which controller looks after the object; absent or ray.io/kuberay-operator is this one.",
    }

    entrypoint: str | None = None
    runtime_env_yaml: str | None = Field(default=None, alias="runtimeEnvYAML")
    job_id: str | None = None
    metadata: dict[str, str] | None = None
    entrypoint_num_cpus: float | None = None
    entrypoint_num_gpus: float | None = None
    entrypoint_resources: str | None = None
    submission_mode: Annotated[str | None, Schema(default="K8sJobMode")] = None
    ray_cluster_spec: RayClusterSpec | None = None
    cluster_selector: dict[str, str] | None = None
    submitter_pod_template: PodTemplate | None = None
    submitter_config: SubmitterConfig | None = None
    backoff_limit: Annotated[Int32 | None, Schema(default=0)] = None
    active_deadline_seconds: Int32 | None = None
    pre_running_deadline_seconds: Annotated[Int32 | None, Schema(minimum=1)] = None
    ttl_seconds_after_finished: Annotated[Int32 | None, Schema(default=0)] = None
    shutdown_after_job_finishes: bool | None = None
    suspend: bool | None = None
    managed_by: ManagedBy = None
    deletion_strategy: DeletionStrategy | None = None

    @property
    def mode(self) -> str:
        """The submission mode as written; K8sJobMode when absent or empty."""
        return self.submission_mode or SubmissionMode.K8S_JOB


class RayJobInfo(Model):
    """Times that Ray itself reports for the job."""

    start_time: Timestamp | None = None
    end_time: Timestamp | None = None


class RayJobStatus(Model):
    """What is. `jobStatus` is Ray's word, `jobDeploymentStatus` the operator's."""

    job_id: str | None = None
    ray_cluster_name: str | None = None
    dashboard_url: str | None = Field(default=None, alias="dashboardURL")
    job_status: str | None = None
    job_deployment_status: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: Timestamp | None = None
    end_time: Timestamp | None = None
    succeeded: Annotated[Int32 | None, Schema(default=0)] = None
    failed: Annotated[Int32 | None, Schema(default=0)] = None
    ray_cluster_status: RayClusterStatus | None = None
    ray_job_info: RayJobInfo | None = None
    job_status_check_failure_start_time: Timestamp | None = None
    observed_generation: int | None = None


class RayJob(Resource):
    """A Ray program to run to its end."""

    definition: ClassVar[Definition] = Definition(
        group="ray.io",
        version="v1",
        kind="RayJob",
        plural="rayjobs",
        singular="rayjob",
        categories=("all",),
        columns=(
            Column("job status", "string", ".status.jobStatus"),
            Column("deployment status", "string", ".status.jobDeploymentStatus"),
            Column("ray cluster name", "string", ".status.rayClusterName"),
            Column("start time", "string", ".status.startTime"),
            Column("end time", "string", ".status.endTime"),
            Column("age", "date", ".metadata.creationTimestamp"),
            Column("reason", "string", ".status.reason", priority=1),
            Column("message", "string", ".status.message", priority=1),
        ),
    )

    metadata: ObjectMeta
    spec: RayJobSpec = Field(default_factory=RayJobSpec)
    status: RayJobStatus | None = None
