"""kwok's stages: what it does with a fake node and with the pods on it, taken from its own module."""

from __future__ import annotations

from pathlib import Path

from tests.cluster import versions
from tests.cluster.cache import Cache
from tests.cluster.gobuild import module_source
from tests.cluster.progress import Steps

ANNOTATION = {"kwok.x-k8s.io/node": "fake"}

# Nodes become Ready and renew a Lease as kubelets do; pods run at once, a Job's pods succeed at once.
_STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")


def stages(cache: Cache, steps: Steps) -> Path:
    """Return a file with all stages, without which kwok ends at once."""

    def build(folder: Path) -> None:
        with steps.step(f"Fetching the stages of kwok {versions.KWOK}"):
            source = module_source("sigs.k8s.io/kwok") / "kustomize" / "stage"
        files = [
            file for stage in _STAGES for file in sorted((source / stage).glob("*.yaml")) if "kustom" not in file.name
        ]
        (folder / "stages.yaml").write_text("\n---\n".join(file.read_text() for file in files))

    return cache.entry("kwok-stages", versions.KWOK, build=build) / "stages.yaml"
