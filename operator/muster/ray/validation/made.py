"""What Muster makes of a cluster's spec: the API server is asked whether it would take that, not only what was written.

Pods and head service have more in them than the user wrote, and one may not go with the other: an init container of a
name that Muster uses, annotations that leave no room for ours, a reference in an option that becomes a variable. Asked
only once the head is there, the API server would leave half a gang behind.

Names are the same for every cluster: clusters of one make are one question. Each problem is told at the field that the
user wrote, and what Muster adds is called so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from muster.api.errors import FieldProblem
from muster.api.metadata import ObjectMeta
from muster.api.raycluster import RayCluster, RayClusterSpec, WorkerGroupSpec
from muster.api.rayjob import RayJob, RayJobSpec, SubmissionMode
from muster.ray import labels, names
from muster.ray.autoscaler import CONTAINER as AUTOSCALER
from muster.ray.gang_membership import GangMembership
from muster.ray.init_container import CONTAINER as WAIT
from muster.ray.init_container import INHERITED
from muster.ray.pod_options import PodOptions
from muster.ray.pods import head_pod, worker_pod
from muster.ray.selection import runs_elsewhere
from muster.ray.services import head_service
from muster.ray.submitter import submitter_job
from muster.ray.upgrade import generation_annotations
from muster.ray.validation.counterpart import Step, counterpart, joined, steps
from muster.ray.validation.templates import WrittenTemplate, autoscaler_template, head_template, worker_template
from muster.ray.validation.templates import submitter_template as written_submitter

Manifest = dict[str, Any]

_NAME: Final = "x" * names.MAX_RAY_CLUSTER_NAME
_GROUP: Final = "x" * 63
_UID: Final = "00000000-0000-0000-0000-000000000000"
_GENERATION: Final = f"2-{'0' * 16}"
_SHOWN_IN_PODS: Final = (labels.OVERWRITE_CONTAINER_COMMAND, labels.FT_ENABLED, labels.EXTERNAL_STORAGE_NAMESPACE)
"""Annotations of a cluster by which its pods differ."""
_IN_NO_OTHER_POD: Final = {"head_group_spec", "worker_group_specs", "suspend", "managed_by", "upgrade_strategy"}
_REDIS: Final = (("REDIS_USERNAME", "redisUsername"), ("REDIS_PASSWORD", "redisPassword"))
_OF_JOBS: Final = (
    "job-name",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
)
"""Labels by which a Job knows its pods, those last of which its selector is made."""
_NO_MATCH: Final = "`selector` does not match template `labels`"
_KINDS: Final = {"containers": "a container", "initContainers": "an init container"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Part of what is made, at `begins`, that comes from another field than the template: `written`, at `path`."""

    begins: tuple[Step, ...]
    path: str
    written: Mapping[str, Any]


@dataclass(slots=True)
class MadeTemplate:
    """The template of pods as Muster makes them of the one at `path`, made when it is looked at.

    `key` is all that it is made from. `parts` are what the user wrote of it: what is wrong with one of them is told as
    it was written. `origins_in` finds the parts of what is made that come from elsewhere.
    """

    path: str
    key: list[Any]
    make: Callable[[], Manifest]
    written: Mapping[str, Any]
    parts: tuple[WrittenTemplate, ...] = ()
    origins_in: Callable[[Manifest], Iterable[Origin]] = lambda _: ()
    _body: Manifest | None = None

    @property
    def body(self) -> Manifest:
        """What the API server is asked about."""
        if self._body is None:
            self._body = self.make()
        return self._body

    @property
    def template(self) -> Manifest:
        """The template of the pods in it."""
        return self.body

    def told(self, problem: FieldProblem) -> FieldProblem:
        """A problem at a path in what was made, as the user needs to know it."""
        made = self.template
        path = _inherited_from(steps(problem.path), made)
        for origin in self.origins_in(made):
            if tuple(path[: len(origin.begins)]) == origin.begins:
                inner = path[len(origin.begins) :]
                return _told(origin.path, inner, _at(made, origin.begins), origin.written, problem.message)
        return self._taken_name(path, problem) or _told(self.path, path, made, self.written, problem.message)

    def _taken_name(self, path: list[Step], problem: FieldProblem) -> FieldProblem | None:
        """The user's container that has the name of one of Muster's, where that is the problem."""
        if path[-1:] != ["name"] or not problem.message.startswith("Duplicate value"):
            return None
        name = _at(self.template, path)
        found: list[list[Step]] = []
        adds: list[str] = []
        for kind, what in _KINDS.items():
            for index, container in enumerate(self.template["spec"].get(kind) or []):
                if container.get("name") == name:
                    place, ours = counterpart(["spec", kind, index, "name"], self.template, self.written)
                    adds += [what] if ours else []
                    found += [] if ours else [place]
        if not found or not adds:
            return None
        text = f'"{name}" is the name of {adds[0]} that Muster adds; choose another'
        return FieldProblem(f"{self.path}.{joined(found[0])}", text)


@dataclass(slots=True)
class MadeJob(MadeTemplate):
    """The Job that makes the pods of a template: the API server is asked about all of it, which no Job may differ from.

    What it says of anything but the template counts for nothing.
    """

    @property
    def template(self) -> Manifest:
        """See MadeTemplate."""
        found: Manifest = self.body["spec"]["template"]
        return found

    def told(self, problem: FieldProblem) -> FieldProblem:
        """As for other pods, in fewer words than the API server has for labels that are not the user's to give."""
        wrong = [label for label in _OF_JOBS if problem.path == f"metadata.labels[{label}]"]
        if problem.path == "metadata.labels" and problem.message.endswith(_NO_MATCH):
            # The selector is made of those that the server gives: it says twice that one of them is another.
            given = self.template["metadata"]["labels"]
            wrong = [label for label in _OF_JOBS if label in given]
        if not wrong:
            return MadeTemplate.told(self, problem)
        text = "Kubernetes gives the pods of a Job this label itself; leave it out"
        return FieldProblem(f"{self.path}.metadata.labels[{wrong[-1]}]", text)


@dataclass(frozen=True, slots=True)
class MadeService:
    """The head service as Muster makes it, with `annotations` that stand in a field of their own."""

    path: str
    service: Manifest
    written: Mapping[str, Any]
    annotations_path: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[WrittenTemplate, ...] = ()

    @property
    def body(self) -> Manifest:
        """What the API server is asked about."""
        return self.service

    @property
    def key(self) -> list[Any]:
        """As for pods."""
        return [self.service]

    def told(self, problem: FieldProblem) -> FieldProblem:
        """As for pods."""
        if problem.path == "metadata.annotations" and self._own_annotation(problem.message):
            return FieldProblem(self.annotations_path, problem.message)
        path = steps(problem.path)
        spec = self.written.get("spec") or {}
        if path[:3] == ["spec", "clusterIPs", 0] and not spec.get("clusterIPs"):
            path = ["spec", "clusterIP"]
        return _told(self.path, path, self.service, self.written, problem.message)

    def _own_annotation(self, message: str) -> bool:
        users = (self.written.get("metadata") or {}).get("annotations") or {}
        return not users or any(f'"{key}"' in message for key in self.annotations)


Made = MadeTemplate | MadeService | WrittenTemplate


def made_of_ray_cluster(cluster: RayCluster, options: PodOptions) -> list[Made]:
    """The head's pod, those of each worker group, and the head service if the user says anything about it.

    Only for a spec with which nothing is wrong by our own rules.
    """
    origin = cluster.metadata.labels.get(labels.ORIGINATED_FROM_KIND)
    typical = _typical(cluster.spec, cluster.metadata, origin)
    return list(_made(typical, "spec", options))


def made_of_ray_job(job: RayJob, options: PodOptions) -> list[Made]:
    """Those of the job's own cluster, and the submitter's Job if the user says anything about it."""
    spec, found = job.spec.ray_cluster_spec, list[Made]()
    if spec is not None:
        found += _made(_typical(spec, job.metadata, RayJob.definition.kind), "spec.rayClusterSpec", options)
    return [*found, *_made_submitter(job)]


def _made_submitter(job: RayJob) -> Iterator[Made]:
    """Where there is to be no submitter, its template as it was written."""
    for written in written_submitter(job):
        if job.spec.mode != SubmissionMode.K8S_JOB:
            yield written
            continue
        template = _without_own_name(written.template, names.submitter_job(job.metadata.name))
        elsewhere = runs_elsewhere(job)
        make = partial(_submitter, template, elsewhere=elsewhere)
        yield MadeJob(written.path, ["Job", template, elsewhere], make, written.template, (written,))


def _without_own_name(template: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The template without labels that say what the server says anyway, of a Job of this name."""
    metadata = template.get("metadata") or {}
    given = metadata.get("labels") or {}
    others = {label: value for label, value in given.items() if label not in _OF_JOBS or value != name}
    return template if others == given else {**template, "metadata": {**metadata, "labels": others}}


def _submitter(template: Mapping[str, Any], *, elsewhere: bool) -> Manifest:
    """A submitter's Job of this template that is like all others of its make."""
    metadata = ObjectMeta(name=_NAME, namespace=_NAME, uid=_UID)
    job = RayJob(metadata=metadata, spec=RayJobSpec(entrypoint="true", submitter_pod_template=dict(template)))
    gang = None if elsewhere else GangMembership(names.pod_group(_NAME))
    made = submitter_job(job, image="muster", dashboard_address="head:8265", submission_id=_NAME, gang=gang)
    return {"spec": made["spec"]}


def _typical(spec: RayClusterSpec, metadata: ObjectMeta, origin: str | None) -> RayCluster:
    """A cluster of this spec that is like all others of its make."""
    annotations = {key: metadata.annotations[key] for key in _SHOWN_IN_PODS if key in metadata.annotations}
    told = {labels.ORIGINATED_FROM_KIND: origin} if origin else {}
    like_all = ObjectMeta(name=_NAME, namespace=metadata.namespace, uid=_UID, labels=told, annotations=annotations)
    return RayCluster(metadata=like_all, spec=spec)


def _made(cluster: RayCluster, path: str, options: PodOptions) -> Iterator[Made]:
    spec, gang = cluster.spec, GangMembership(names.pod_group(_NAME))
    head = spec.head_group_spec.dump()
    shared = [
        spec.model_dump(by_alias=True, exclude_unset=True, exclude=_IN_NO_OTHER_POD),
        cluster.metadata.annotations,
        cluster.metadata.labels,
    ]
    written = head_template(spec, path)
    yield MadeTemplate(
        written.path,
        [head, *shared],
        partial(_head, cluster, gang, options),
        written.template,
        (written, *autoscaler_template(spec, path)),
        partial(_origins, spec, path),
    )
    beside = {key: value for key, value in head.items() if key != "template"}
    for index, group in enumerate(spec.worker_groups):
        written = worker_template(group, index, path)
        own = [group.template, group.ray_start_params, group.resources, group.labels]
        make = partial(_worker, cluster, group, gang, options)
        yield MadeTemplate(written.path, [own, beside, *shared], make, written.template, (written,))
    if spec.head_group_spec.head_service is not None or spec.head_service_annotations:
        yield made_service(cluster, path, options)


def _head(cluster: RayCluster, gang: GangMembership, options: PodOptions) -> Manifest:
    template = cluster.spec.head_group_spec.template
    return _template(template, head_pod(cluster, "", gang, options), is_head=True)


def _worker(cluster: RayCluster, group: WorkerGroupSpec, gang: GangMembership, options: PodOptions) -> Manifest:
    typical = group.model_copy(update={"group_name": _GROUP})
    return _template(group.template, worker_pod(cluster, typical, "", gang, options=options), is_head=False)


def _template(written: Mapping[str, Any], pod: Manifest, *, is_head: bool) -> Manifest:
    """What else is written stays, for the API server to tell whether it is a field at all."""
    metadata = pod["metadata"]
    annotations = metadata["annotations"] | generation_annotations(_GENERATION, is_head=is_head)
    told = {"labels": metadata["labels"], "annotations": annotations}
    return {**written, "metadata": {**(written.get("metadata") or {}), **told}, "spec": pod["spec"]}


def _origins(spec: RayClusterSpec, path: str, template: Manifest) -> Iterator[Origin]:
    """Where parts of the head come from that are not the template's."""
    containers = template["spec"]["containers"]
    written = len(spec.head_group_spec.template["spec"]["containers"])
    redis = spec.gcs_fault_tolerance_options
    if redis is not None:
        options = redis.dump()
        for variable, option in _REDIS:
            for index, given in enumerate(containers[0]["env"]):
                if given["name"] == variable and options.get(option):
                    yield Origin(
                        ("spec", "containers", 0, "env", index),
                        f"{path}.gcsFaultToleranceOptions.{option}",
                        options[option],
                    )
    if spec.autoscaling and spec.autoscaler_options is not None:
        for index in range(written, len(containers)):
            if containers[index]["name"] == AUTOSCALER:
                yield Origin(("spec", "containers", index), f"{path}.autoscalerOptions", spec.autoscaler_options.dump())


def made_service(cluster: RayCluster, path: str, options: PodOptions) -> MadeService:
    """The head service of a cluster whose spec stands at `path`."""
    manifest = head_service(cluster, with_cluster_ip=options.head_cluster_ip)
    metadata = {key: manifest["metadata"][key] for key in ("labels", "annotations")}
    return MadeService(
        path=f"{path}.headGroupSpec.headService",
        service={"metadata": metadata, "spec": manifest["spec"]},
        written=cluster.spec.head_group_spec.head_service or {},
        annotations_path=f"{path}.headServiceAnnotations",
        annotations=cluster.spec.head_service_annotations or {},
    )


def _inherited_from(path: list[Step], template: Mapping[str, Any]) -> list[Step]:
    """The place in Ray's container that `wait-gcs-ready` has this from, if it has it from there."""
    waits = template["spec"].get("initContainers") or [{}]
    last = ["spec", "initContainers", len(waits) - 1]
    if waits[-1].get("name") == WAIT and path[:3] == last and path[3:4] and path[3] in INHERITED:
        return ["spec", "containers", 0, *path[3:]]
    return path


def _told(path: str, inner: list[Step], made: Any, written: Any, message: str) -> FieldProblem:
    place, ours = counterpart(inner, made, written)
    where = f"{path}.{joined(place)}" if place else path
    if ours:
        message = f"Muster adds {joined(ours)} to it, which the API server refuses: {message}"
    return FieldProblem(where, message)


def _at(made: Any, path: tuple[Step, ...] | list[Step]) -> Any:
    for step in path:
        try:
            made = made[step]
        except (KeyError, IndexError, TypeError):
            return None
    return made
