"""What every reconciler works with: the API server, the informers' view of children, time, chance and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.controllers.children import Children
from muster.controllers.clock import Clock, SystemClock
from muster.controllers.crashes import CrashedPods
from muster.controllers.dashboard import DashboardResolver
from muster.controllers.dashboard_questions import DashboardQuestions
from muster.controllers.dashboard_turns import DashboardTurns
from muster.controllers.dead_nodes import NODE_INDEX, DeadNodes, node_of
from muster.controllers.deletion_defaults import DeletionDefaults
from muster.controllers.interests import Interests
from muster.controllers.job_figures import KnownJobs
from muster.controllers.per_version import PerVersion
from muster.controllers.primaries import ObservedResource, Primaries
from muster.controllers.recent import RecentAnswers
from muster.controllers.refused_pods import RefusedPods
from muster.controllers.setbacks import Setbacks
from muster.controllers.settling import Settling
from muster.controllers.slots import Slots
from muster.controllers.template_judge import TemplateJudge
from muster.controllers.tokens import Tokens
from muster.kube.access_objects import Role, RoleBinding, ServiceAccount
from muster.kube.client import ApiClient
from muster.kube.events import EventRecorder, EventType, ObjectReference
from muster.kube.informer import Informer
from muster.kube.malformed import MalformedObject
from muster.kube.objects import Ingress, Job, Node, Pod, PodGroup, Queue, Service
from muster.kube.resource import (
    INGRESSES,
    JOBS,
    PODGROUPS,
    PODS,
    QUEUES,
    RAYCLUSTERS,
    RAYJOBS,
    ROLEBINDINGS,
    ROLES,
    SERVICEACCOUNTS,
    SERVICES,
    Resource,
)
from muster.ray import labels
from muster.ray.pod_options import PodOptions

RAY_CLUSTER_INDEX = "ray-cluster"
"""Index of pods: "namespace/cluster" of the label that names their Ray cluster."""

UNREADABLE_OBJECT = "UnreadableObject"
"""Event about an object of an owner that has what Muster can't read, and `status.reason` of its RayJob."""

MADE_BY_US = f"{labels.CREATED_BY}={labels.OPERATOR}"
"""Selects what carries the label that all of KubeRay's makings carry, but for the services of RayJobs."""


class ObservedRayCluster(ObservedResource, frozen=True):
    """A RayCluster: what its own reconciler starts from, and the child of a RayJob."""


class ObservedRayJob(ObservedResource, frozen=True):
    """A RayJob: what its reconciler starts from."""


@dataclass(frozen=True, slots=True)
class ControllerInformers:
    """The watches that the controllers read, run by their owner (some are the engine's too).

    Of service accounts, roles, bindings and ingresses those that Muster made (`MADE_BY_US`) are enough.
    """

    pods: Informer[Pod]
    services: Informer[Service]
    jobs: Informer[Job]
    pod_groups: Informer[PodGroup]
    queues: Informer[Queue]
    ray_clusters: Informer[ObservedRayCluster]
    ray_jobs: Informer[ObservedRayJob]
    service_accounts: Informer[ServiceAccount]
    roles: Informer[Role]
    role_bindings: Informer[RoleBinding]
    ingresses: Informer[Ingress]
    nodes: Informer[Node]


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """The operator's own settings. Times are in seconds.

    `submitter_image` is Muster's own image. `gate` holds pods back until their gang has a place; None under a scheduler
    that does not remove it. Without `gangs` there are none: neither PodGroups nor
    Queues are read or written. An empty `namespaces` means all. `poll_interval` is how often a running
    Ray job is looked at; after `status_check_timeout` without an answer the job counts as lost; a submitter gets
    `submitter_grace` to end after its Ray job did. `redis_cleanup` says whether a cluster with its state in a Redis is
    held until that has been cleared out. `random_pod_delete`: workers beyond `replicas` go also where Ray's autoscaler
    has not named them. A pod whose node has not answered for `dead_node_timeout` is replaced. `concurrency`
    looks of a kind are under way at once, and up to `most_at_once` while they are stuck. An object rests for
    `rest` after each look, so that changes that come together are looked at together.
    """

    submitter_image: str
    submitter_image_pull_policy: str | None = None
    scheduler_name: str = labels.SCHEDULER_NAME
    gate: str | None = labels.GANG_GATE
    gangs: bool = True
    namespaces: tuple[str, ...] = ()
    concurrency: int = 10
    most_at_once: int = 100
    rest: float = 0.05
    poll_interval: float = 3.0
    status_check_timeout: float = 300.0
    submitter_grace: float = 300.0
    create_queues: bool = True
    deletion_defaults: DeletionDefaults = field(default_factory=DeletionDefaults)
    dead_node_timeout: float = 300.0
    redis_cleanup: bool = True
    random_pod_delete: bool = False
    pods: PodOptions = field(default_factory=PodOptions)


class Context:
    """Built once, handed to every reconciler."""

    def __init__(
        self,
        client: ApiClient,
        informers: ControllerInformers,
        recorder: EventRecorder,
        options: ControllerOptions,
        dashboards: DashboardResolver,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        self.client = client
        self.recorder = recorder
        self.options = options
        self.dashboards = dashboards
        self.job_slots = Slots(options.concurrency, options.most_at_once, clock=clock)
        self.dashboard_turns = DashboardTurns(self.job_slots)
        self.clock = clock or SystemClock()
        self.dashboard_questions = DashboardQuestions(dashboards, self.clock)
        self.random = random or Random()
        self.known_jobs = KnownJobs()
        self.templates = TemplateJudge(client, self.clock)
        self.tokens = Tokens(client, self.clock)
        self.job_settling = Settling(self.clock)
        self.cluster_settling = Settling(self.clock)
        self.recent_answers = RecentAnswers(self.clock, options.poll_interval)
        self.job_cluster_problems: PerVersion[list[FieldProblem]] = PerVersion()
        self.setbacks_in_passing: dict[str, Setbacks] = {}
        """By the keys of RayJobs: what serves a job and fails, without keeping it from its end."""
        self.job_interests = Interests()
        self.cluster_interests = Interests()
        self.pods = Children(client, PODS, Pod, informers.pods, self.clock)
        self.services = Children(client, SERVICES, Service, informers.services, self.clock)
        self.jobs = Children(client, JOBS, Job, informers.jobs, self.clock)
        self.crashed_pods = CrashedPods(self.clock)
        self.refused_pods = RefusedPods(client, self.clock, self.pods)
        self.pods.informer.add_index(RAY_CLUSTER_INDEX, _ray_cluster)
        self.pods.informer.add_index(NODE_INDEX, node_of)
        self.nodes = informers.nodes
        self.dead_nodes = DeadNodes(informers.nodes, self.clock, options.dead_node_timeout)
        self.pod_groups = Children(client, PODGROUPS, PodGroup, informers.pod_groups, self.clock)
        self.queues = Children(client, QUEUES, Queue, informers.queues, self.clock)
        self.service_accounts = Children(
            client, SERVICEACCOUNTS, ServiceAccount, informers.service_accounts, self.clock
        )
        self.roles = Children(client, ROLES, Role, informers.roles, self.clock)
        self.role_bindings = Children(client, ROLEBINDINGS, RoleBinding, informers.role_bindings, self.clock)
        self.ingresses = Children(client, INGRESSES, Ingress, informers.ingresses, self.clock)
        self.ray_clusters = Children(client, RAYCLUSTERS, ObservedRayCluster, informers.ray_clusters, self.clock)
        self.primaries: Mapping[Resource, Primaries[Any]] = {
            RAYCLUSTERS: Primaries(client, RAYCLUSTERS, ObservedRayCluster, informers.ray_clusters),
            RAYJOBS: Primaries(client, RAYJOBS, ObservedRayJob, informers.ray_jobs),
        }

    def say(
        self,
        about: RayCluster | RayJob,
        kind: EventType,
        reason: str,
        message: str,
        action: str,
        *,
        change: str | None = None,
        subject: str = "",
    ) -> None:
        """Record an event about a custom resource; `change` and `subject` are explained at `EventRecorder.event`.

        Without a `change` a fact is told once for each generation of the spec.
        """
        meta = about.metadata
        definition = about.definition
        reference = ObjectReference(
            f"{definition.group}/{definition.version}", definition.kind, meta.namespace, meta.name, meta.uid
        )
        generation = str(meta.generation)
        self.recorder.event(
            reference, kind, reason, message, action, change=generation if change is None else change, subject=subject
        )

    def unreadable_children(self, owner: RayCluster | RayJob) -> list[MalformedObject]:
        """What was made for a custom resource and can't be read any more."""
        meta = owner.metadata
        kinds: tuple[Children[Any], ...] = (
            self.pod_groups,
            self.ray_clusters,
            self.services,
            self.jobs,
            self.service_accounts,
            self.roles,
            self.role_bindings,
            self.ingresses,
            self.pods,
        )
        return [one for kind in kinds for one in kind.unreadable(str(meta.namespace), str(meta.uid))]

    def say_unreadable(self, owner: RayCluster | RayJob) -> None:
        """Tell of it."""
        for one in self.unreadable_children(owner):
            change, subject = f"{one.uid} {one.path_message}", f"{one.resource.kind} {one.key}"
            self.say(owner, "Warning", UNREADABLE_OBJECT, str(one), "Reconcile", change=change, subject=subject)

    def pods_of(self, cluster: RayCluster) -> list[Pod]:
        """The pods that belong to this cluster."""
        return self.pods.owned_by(cluster.metadata.namespace, cluster.metadata.uid)

    def pods_labelled(self, namespace: str, ray_cluster: str) -> list[Pod]:
        """The pods that call themselves part of this cluster, whoever owns them."""
        return self.pods.informer.by_index(RAY_CLUSTER_INDEX, f"{namespace}/{ray_cluster}")


def ray_cluster_of(pod: Pod) -> str | None:
    """The "namespace/name" of the Ray cluster that the pod's label names."""
    name = pod.metadata.labels.get(labels.CLUSTER)
    return f"{pod.metadata.namespace}/{name}" if name else None


def _ray_cluster(pod: Pod) -> list[str]:
    key = ray_cluster_of(pod)
    return [key] if key else []
