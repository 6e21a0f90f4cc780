"""What is applied under both operators: KubeRay's own samples, and small cases of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayCluster
from muster.api.rayjob import RayJob
from muster.ray.validation import validate_ray_cluster, validate_ray_job
from muster.ray.validation.unsupported import NOT_YET

Manifest = dict[str, Any]
RAY_KINDS = ("RayCluster", "RayJob")
_NOT_YET = NOT_YET.partition(";")[0]


@dataclass(frozen=True)
class Case:
    """Manifests that are applied together, into a namespace of their own."""

    name: str
    documents: tuple[Manifest, ...]

    @property
    def ray_objects(self) -> list[Manifest]:
        """The RayClusters and RayJobs of the case."""
        return [document for document in self.documents if document["kind"] in RAY_KINDS]

    def lacking(self) -> str | None:
        """What of the case this version of Muster does not have yet; None when it has all."""
        missing = [str(problem) for one in self.ray_objects for problem in problems(one) if _NOT_YET in str(problem)]
        return "; ".join(missing) or None


def samples(config: Path) -> list[Case]:
    """The samples in KubeRay's folder `config/samples` that are RayClusters or RayJobs, named by their files."""
    folder = config / "samples"
    cases = [Case(_name(folder, file), tuple(_documents(file))) for file in sorted(folder.rglob("*.yaml"))]
    return [case for case in cases if case.ray_objects]


def problems(manifest: Manifest) -> list[FieldProblem]:
    """What Muster's rules say of a RayCluster or RayJob."""
    named = {**manifest, "metadata": {"namespace": "default", "uid": "1", **manifest["metadata"]}}
    if manifest["kind"] == "RayCluster":
        return validate_ray_cluster(RayCluster.parse(named))
    return validate_ray_job(RayJob.parse(named))


def _name(folder: Path, file: Path) -> str:
    return file.relative_to(folder).with_suffix("").as_posix()


def _documents(file: Path) -> Iterator[Manifest]:
    for document in yaml.safe_load_all(file.read_text()):
        if isinstance(document, Mapping) and "kind" in document:
            metadata = dict(document["metadata"])
            # A name that the API server makes up would be another one under each operator.
            metadata.setdefault("name", str(metadata.pop("generateName", "")).rstrip("-"))
            yield {**document, "metadata": metadata}
