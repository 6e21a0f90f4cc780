"""A cluster's spec as the rules look at it: the same, whether it stands in a RayCluster or inside a RayJob."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from muster.api.errors import FieldProblem, MalformedResource
from muster.api.podtemplate import PodTemplateSpec
from muster.api.raycluster import HeadGroupSpec, RayClusterSpec, WorkerGroupSpec

Problems = Iterator[FieldProblem]

_AUTOSCALER_V2 = "RAY_enable_autoscaler_v2"


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template that was read, or why it can't be: `parsed` is empty where `problems` is not.

    `written` is the template as it stands in the object.
    """

    path: str
    parsed: PodTemplateSpec
    problems: tuple[FieldProblem, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, template: Mapping[str, Any], path: str) -> Self:
        """Read a template that stands at `path`."""
        try:
            return cls(path, PodTemplateSpec.parse(template), written=template)
        except MalformedResource as refusal:
            problems = (FieldProblem(f"{path}.{problem.path}", problem.message) for problem in refusal.problems)
            return cls(path, PodTemplateSpec(), tuple(problems), template)

    @property
    def sound(self) -> bool:
        """True when its types are right, so that it can be looked at more closely."""
        return not self.problems

    def first_container_env(self) -> dict[str, str | None]:
        """The variables of the Ray container; None for a value that comes from elsewhere."""
        containers = self.parsed.containers
        return {variable.name: variable.value for variable in (containers[0].env or [])} if containers else {}


@dataclass(frozen=True, slots=True)
class Group:
    """The head group or a worker group, and where it stands."""

    path: str
    spec: HeadGroupSpec | WorkerGroupSpec
    template: Template


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster's spec at `path`, with what else the rules need.

    `cluster_name` is the name that the cluster has or will have (with a stand-in for a random suffix); `annotations`
    and `originated_from` are those of the object that holds the spec. `ray_job` is the RayJob that has the cluster.
    """

    spec: RayClusterSpec
    path: str
    cluster_name: str
    annotations: Mapping[str, str]
    originated_from: str | None
    head: Group
    workers: tuple[Group, ...]
    ray_job: str | None = None

    @classmethod
    def of(
        cls,
        spec: RayClusterSpec,
        *,
        path: str,
        cluster_name: str,
        annotations: Mapping[str, str],
        originated_from: str | None = None,
        ray_job: str | None = None,
    ) -> Self:
        """Read all templates of the spec."""
        groups = (_group(group, f"{path}.workerGroupSpecs[{index}]") for index, group in enumerate(spec.worker_groups))
        return cls(
            spec=spec,
            path=path,
            cluster_name=cluster_name,
            annotations=annotations,
            originated_from=originated_from,
            head=_group(spec.head_group_spec, f"{path}.headGroupSpec"),
            workers=tuple(groups),
            ray_job=ray_job,
        )

    @property
    def groups(self) -> tuple[Group, ...]:
        """The head group, then the worker groups."""
        return (self.head, *self.workers)

    def worker_groups(self) -> Iterator[tuple[str, WorkerGroupSpec]]:
        """Path and spec of each worker group."""
        for index, group in enumerate(self.spec.worker_groups):
            yield f"{self.path}.workerGroupSpecs[{index}]", group

    @property
    def autoscaler_v2_by_env(self) -> bool:
        """True when the head's environment asks for the second autoscaler."""
        return self.head.template.first_container_env().get(_AUTOSCALER_V2) in ("1", "true")

    @property
    def autoscaler_v2(self) -> bool:
        """True when the second autoscaler is asked for, one way or the other."""
        options = self.spec.autoscaler_options
        return self.autoscaler_v2_by_env or (options is not None and options.version == "v2")


ClusterRule = Callable[[ClusterView], Problems]


def _group(spec: HeadGroupSpec | WorkerGroupSpec, path: str) -> Group:
    return Group(path, spec, Template.read(spec.template, f"{path}.template"))
