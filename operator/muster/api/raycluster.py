"""RayCluster (ray.io/v1): a head group and worker groups of pods that form one Ray cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from muster.api.conditions import Condition
from muster.api.fieldtypes import INT32_MAX, Int32, Object, PodTemplate, Quantity, Timestamp
from muster.api.metadata import ObjectMeta
from muster.api.model import Model, Resource
from muster.api.raycluster_options import (
    AuthOptions,
    AutoscalerOptions,
    GcsFaultToleranceOptions,
    HistoryServerOptions,
    IngressOptions,
    NetworkPolicyOptions,
    TlsOptions,
    UpgradeStrategy,
)
from muster.api.schema import Column, Definition, Rule, Schema

MANAGED_BY_RULES = (
    Rule("self == oldSelf", "the managedBy field is immutable"),
    Rule(
        "self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",
        "the managedBy field value must be either 'ray.io/kuberay-operator' or 'kueue.x-k8s.io/multikueue'",
    ),
)
ManagedBy = Annotated[str | None, Schema(rules=MANAGED_BY_RULES)]


class HeadGroupSpec(Model):
    """The head pod and how it is reached."""

    meanings: ClassVar[Mapping[str, str]] = {
        "template": "The head pod; its first container is Ray.",
        "head_service": "The Service of the head, where it is to differ from what is made.",
        "service_type": "The type of the Service of the head.",
        "enable_ingress": "Whether an Ingress leads to the dashboard.",
        "resources": "What Ray is told that the head has, in place of what its container says.",
        "labels": "Labels of the head in Ray.",
        "ray_start_params": "Flags of `ray start` on the head.",
    }

    template: PodTemplate
    head_service: Object | None = None
    service_type: str | None = None
    enable_ingress: bool | None = None
    ingress_options: IngressOptions | None = None
    resources: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    ray_start_params: dict[str, str] | None = None


class ScaleStrategy(Model):
    """Names of worker pods that the autoscaler wants gone."""

    workers_to_delete: list[str] | None = None


class WorkerGroupSpec(Model):
    """Workers of one shape. Counts are replicas; each replica has `numOfHosts` pods."""

    meanings: ClassVar[Mapping[str, str]] = {
        "group_name": "The name of the group.",
        "template": "The pod of each worker; its first container is Ray.",
        "replicas": "How many replicas there are to be; moved into minReplicas to maxReplicas.",
        "min_replicas": "The least that replicas counts as.",
        "max_replicas": "The most that replicas counts as.",
        "num_of_hosts": "The pods of one replica.",
        "ray_start_params": "Flags of `ray start` on the workers.",
        "resources": "What Ray is told that a worker has, in place of what its container says.",
        "labels": "Labels of the workers in Ray.",
        "idle_timeout_seconds": "Seconds after which the autoscaler takes an idle worker.",
        "priority": "Of several groups that would do the autoscaler adds to the one with the most.",
        "suspend": "Whether the group has no pods.",
    }

    group_name: str
    template: PodTemplate
    replicas: Annotated[Int32 | None, Schema(default=0)] = None
    min_replicas: Annotated[Int32 | None, Schema(default=0)] = None
    max_replicas: Annotated[Int32 | None, Schema(default=INT32_MAX)] = None
    num_of_hosts: Annotated[Int32 | None, Schema(default=1)] = None
    ray_start_params: dict[str, str] | None = None
    resources: dict[str, str] | None = None
    labels: dict[str, str] | None = None
    idle_timeout_seconds: Int32 | None = None
    priority: Annotated[Int32 | None, Schema(default=0)] = None
    suspend: bool | None = None
    scale_strategy: ScaleStrategy | None = None

    @property
    def minimum(self) -> int:
        """minReplicas; 0 when absent."""
        return self.min_replicas or 0

    @property
    def maximum(self) -> int:
        """maxReplicas; no limit when absent (a written 0 is 0)."""
        return INT32_MAX if self.max_replicas is None else self.max_replicas

    @property
    def hosts(self) -> int:
        """Pods of one replica; 1 when absent, and never less."""
        return max(1, 1 if self.num_of_hosts is None else self.num_of_hosts)

    @property
    def desired_replicas(self) -> int:
        """`replicas` moved into minReplicas..maxReplicas; 0 for a suspended group."""
        if self.suspend:
            return 0
        return min(max(self.replicas or 0, self.minimum), self.maximum)

    @property
    def workers_to_delete(self) -> list[str]:
        """Names of pods that the autoscaler wants gone."""
        return (self.scale_strategy.workers_to_delete if self.scale_strategy else None) or []

    @property
    def desired_pods(self) -> int:
        """Pods that the group should have: desired replicas times hosts."""
        return self.desired_replicas * self.hosts


class RayClusterSpec(Model):
    """What the user asks for."""

    meanings: ClassVar[Mapping[str, str]] = {
        "worker_group_specs": "The groups of workers.",
        "ray_version": "The version of Ray in the images.",
        "enable_in_tree_autoscaling": "Whether the autoscaler of Ray sets the numbers of workers.",
        "suspend": "Whether the cluster is to hold nothing: its pods are deleted, and made again when this is false.",
        "managed_by": "Which controller looks after the object; absent or ray.io/kuberay-operator is this one.",
        "head_service_annotations": "Annotations of the Service of the head.",
    }

    head_group_spec: HeadGroupSpec
    worker_group_specs: Annotated[list[WorkerGroupSpec] | None, Schema(list_type="atomic")] = None
    ray_version: str | None = None
    enable_in_tree_autoscaling: bool | None = None
    autoscaler_options: AutoscalerOptions | None = None
    suspend: bool | None = None
    managed_by: ManagedBy = None
    head_service_annotations: dict[str, str] | None = None
    upgrade_strategy: UpgradeStrategy | None = None
    auth_options: AuthOptions | None = None
    gcs_fault_tolerance_options: GcsFaultToleranceOptions | None = None
    history_server_options: HistoryServerOptions | None = None
    network_policy: NetworkPolicyOptions | None = None
    tls_options: TlsOptions | None = None

    @property
    def worker_groups(self) -> list[WorkerGroupSpec]:
        """The worker groups in the order of the spec; empty when absent."""
        return self.worker_group_specs or []

    @property
    def autoscaling(self) -> bool:
        """True when Ray's autoscaler sets the number of workers."""
        return bool(self.enable_in_tree_autoscaling)


class HeadInfo(Model):
    """The head as it runs. serviceIP is the head pod's when the service is headless."""

    pod_ip: str | None = Field(default=None, alias="podIP")
    pod_name: str | None = None
    service_ip: str | None = Field(default=None, alias="serviceIP")
    service_name: str | None = None


class RayClusterStatus(Model):
    """What is. `state` is "", `ready` or `suspended`."""

    state: str | None = None
    reason: str | None = None
    conditions: Annotated[list[Condition] | None, Schema(list_type="map", list_map_keys=("type",))] = None
    observed_generation: int | None = None
    last_update_time: Timestamp | None = None
    state_transition_times: dict[str, Timestamp | None] | None = None
    endpoints: dict[str, str] | None = None
    head: HeadInfo | None = None
    ready_worker_replicas: Int32 | None = None
    available_worker_replicas: Int32 | None = None
    desired_worker_replicas: Int32 | None = None
    min_worker_replicas: Int32 | None = None
    max_worker_replicas: Int32 | None = None
    desired_cpu: Quantity | None = Field(default=None, alias="desiredCPU")
    desired_memory: Quantity | None = None
    desired_gpu: Quantity | None = Field(default=None, alias="desiredGPU")
    desired_tpu: Quantity | None = Field(default=None, alias="desiredTPU")


class RayCluster(Resource):
    """A Ray cluster."""

    definition: ClassVar[Definition] = Definition(
        group="ray.io",
        version="v1",
        kind="RayCluster",
        plural="rayclusters",
        singular="raycluster",
        categories=("all",),
        columns=(
            Column("desired workers", "integer", ".status.desiredWorkerReplicas"),
            Column("available workers", "integer", ".status.availableWorkerReplicas"),
            Column("cpus", "string", ".status.desiredCPU"),
            Column("memory", "string", ".status.desiredMemory"),
            Column("gpus", "string", ".status.desiredGPU"),
            Column("tpus", "string", ".status.desiredTPU", priority=1),
            Column("status", "string", ".status.state"),
            Column("age", "date", ".metadata.creationTimestamp"),
            Column("head pod IP", "string", ".status.head.podIP", priority=1),
            Column("head service IP", "string", ".status.head.serviceIP", priority=1),
        ),
    )

    metadata: ObjectMeta
    spec: RayClusterSpec
    status: RayClusterStatus | None = None
