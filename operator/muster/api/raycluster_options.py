"""The optional parts of a RayCluster: autoscaler, authentication, fault tolerance, network, history, TLS."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from muster.api.fieldtypes import Int32, Object
from muster.api.model import Model
from muster.api.schema import Rule, Schema


class AutoscalerOptions(Model):
    """Overrides for Ray's autoscaler, a sidecar of the head pod."""

    resources: Object | None = None
    image: str | None = None
    image_pull_policy: str | None = None
    security_context: Object | None = None
    idle_timeout_seconds: Int32 | None = None
    upscaling_mode: Annotated[str | None, Schema(enum=("Default", "Aggressive", "Conservative"))] = None
    version: Annotated[str | None, Schema(enum=("v1", "v2"))] = None
    env: list[Object] | None = None
    env_from: list[Object] | None = None
    volume_mounts: list[Object] | None = None
    command: list[str] | None = None
    args: list[str] | None = None


class UpgradeStrategy(Model):
    """What a change of a pod template does to running pods."""

    type: Annotated[str | None, Schema(enum=("Recreate", "None"))] = None


class AuthOptions(Model):
    """Token authentication of Ray; on only when `mode` is `token`."""

    mode: Annotated[str | None, Schema(enum=("disabled", "token"))] = None
    secret_name: str | None = None
    enable_k8s_token_auth: bool | None = Field(default=None, alias="enableK8sTokenAuth")


class RedisCredential(Model):
    """A literal, or an EnvVarSource that names a secret."""

    value: str | None = None
    value_from: Object | None = None


class GcsStorage(Model):
    """The volume of an embedded GCS store."""

    claim_name: str | None = None
    size: Annotated[str | int | None, Schema(int_or_string=True, default="1Gi")] = None
    storage_class_name: str | None = None
    access_modes: Annotated[list[str] | None, Schema(default=("ReadWriteOnce",))] = None
    sub_path: str | None = None
    deletion_policy: Annotated[
        str | None, Schema(enum=("DeleteWithCluster", "Retain"), default="DeleteWithCluster")
    ] = None


class GcsFaultToleranceOptions(Model):
    """Where the GCS keeps its state, so that a new head pod goes on with it."""

    backend: Annotated[
        str | None, Schema(enum=("redis", "rocksdb"), rules=(Rule("self == oldSelf", "backend is immutable"),))
    ] = None
    redis_address: str | None = None
    redis_username: RedisCredential | None = None
    redis_password: RedisCredential | None = None
    external_storage_namespace: str | None = None
    storage: GcsStorage | None = None


class CollectorOptions(Model):
    """The sidecar that collects logs and events for the history server."""

    image: str | None = None
    image_pull_policy: str | None = None
    resources: Object | None = None
    env: list[Object] | None = None


class HistoryServerOptions(Model):
    """Collection for the history server."""

    collector_options: CollectorOptions | None = None


class NetworkRules(Model):
    """NetworkPolicy rules added to what `mode` denies."""

    ingress_rules: list[Object] | None = None
    egress_rules: list[Object] | None = None


class WorkerGroupNetworkRules(NetworkRules):
    """Rules of one worker group; they take the place of those for all workers."""

    group_name: str


class NetworkPolicyOptions(Model):
    """Isolation of the cluster's pods."""

    mode: Annotated[str | None, Schema(enum=("DenyAll", "DenyAllIngress", "DenyAllEgress"), default="DenyAll")] = None
    head: NetworkRules | None = None
    worker: NetworkRules | None = None
    worker_groups: Annotated[
        list[WorkerGroupNetworkRules] | None, Schema(list_type="map", list_map_keys=("groupName",))
    ] = None


class TlsOptions(Model):
    """Mutual TLS between the Ray nodes."""

    enabled: Annotated[bool | None, Schema(default=False)] = None


class IngressTls(Model):
    """Hosts of the Ingress that are served with the certificate in a secret."""

    hosts: list[str] | None = None
    secret_name: str | None = None


class IngressOptions(Model):
    """The Ingress of the dashboard."""

    host: str | None = None
    path: str | None = None
    path_type: Annotated[str | None, Schema(enum=("Exact", "Prefix", "ImplementationSpecific"))] = None
    tls: list[IngressTls] | None = None
