"""The cluster that the end-to-end tests and the demo run on: kind, or whatever KUBECONFIG names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.gobuild import go_binaries
from tests.cluster.progress import Steps

if TYPE_CHECKING:
    from tests.cluster.node.cluster import NodeCluster


@dataclass(frozen=True)
class Target:
    """Where to run, and the images that the cluster's nodes have or can pull."""

    kubeconfig: Path
    kubectl: Path
    ray_image: str
    muster_image: str
    redis_image: str

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Target:
        """The target whose fields are these, as another process was told them."""
        images = (texts["ray_image"], texts["muster_image"], texts["redis_image"])
        return cls(Path(texts["kubeconfig"]), Path(texts["kubectl"]), *images)


def current() -> Target:
    """The cluster that KUBECONFIG names. MUSTER_IMAGE, RAY_IMAGE and REDIS_IMAGE say what its nodes can pull.

    Raises LookupError naming the variable that is missing.
    """
    missing = [name for name in ("KUBECONFIG", "MUSTER_IMAGE") if not os.environ.get(name)]
    if missing:
        raise LookupError(f"CLUSTER=current needs {' and '.join(missing)} in the environment")
    return Target(
        kubeconfig=Path(os.environ["KUBECONFIG"]),
        kubectl=Path(os.environ.get("KUBECTL", "kubectl")),
        ray_image=os.environ.get("RAY_IMAGE", "rayproject/ray:2.60.0"),
        muster_image=os.environ["MUSTER_IMAGE"],
        redis_image=os.environ.get("REDIS_IMAGE", "redis:7.4-bookworm"),
    )


@contextmanager
def kind(
    steps: Steps,
    *,
    name: str,
    configuration: Path | None = None,
    keep: bool = False,
    prepare: Callable[[NodeCluster], None] | None = None,
) -> Iterator[Target]:
    """A kind cluster with Ray's and Muster's images on its nodes; gone afterwards unless `keep`.

    `configuration` is kind's, by default the repository's. `prepare` is given the cluster when it is up, for what else
    its nodes shall have.
    """
    # Imported here: the node level is not needed, and may not be possible, where the cluster is given.
    from tests.cluster.node.cluster import CONFIGURATION, NodeCluster
    from tests.cluster.node.muster_image import build_muster_image

    cluster = NodeCluster(name=name, configuration=configuration or CONFIGURATION, steps=steps)
    try:
        # Built while the nodes start; what is asked for afterwards is there already.
        cluster.start(reuse=keep, meanwhile=lambda: build_muster_image(cluster))
        image = build_muster_image(cluster)
        cluster.load_image(image)
        if prepare is not None:
            prepare(cluster)
        kubectl = go_binaries(["kubectl"])["kubectl"]
        yield Target(cluster.kubeconfig, kubectl, cluster.ray_image, image, cluster.redis_image)
    finally:
        if not keep:
            cluster.stop()
