"""The images that KubeRay's tests ask for, where the registry that has them is out of reach.

Both are Ray's image as the cluster has it, with other settings: the tests start programs by paths below `/home/ray`,
which is where Ray's public image starts, and they run `redis:7.4` with its default command.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cluster import versions
from tests.cluster.node.cluster import NodeCluster
from tests.cluster.node.image_archive import LAYER
from tests.cluster.node.ray_image import TAG, ray_image

RAY = f"localhost/ray-home:{versions.RAY}"
REDIS = "docker.io/library/redis:7.4"
_SETTINGS: Mapping[str, Mapping[str, Any]] = {
    RAY: {"WorkingDir": "/home/ray"},
    REDIS: {"Cmd": ["redis-server", "--protected-mode", "no"]},
}


def ray_image_of(cluster_image: str) -> str:
    """The Ray image that the tests are given on a cluster that has this one."""
    return RAY if cluster_image == TAG else cluster_image


def load(cluster: NodeCluster) -> None:
    """Give the images to the workers of a cluster that was made without a registry; others can pull them."""
    if cluster.ray_image != TAG:
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "images.tar"
        write_variants(ray_image(cluster.cache, cluster.steps), archive, _SETTINGS)
        cluster.load_archive(archive, title=" and ".join(_SETTINGS))


def write_variants(image: Path, archive: Path, settings: Mapping[str, Mapping[str, Any]]) -> None:
    """Write an archive of images with the one layer of `image`: each key is a tag, its value replaces settings."""
    with tarfile.open(image) as source, tarfile.open(archive, "w") as target:
        layer = source.getmember(LAYER)
        target.addfile(layer, source.extractfile(layer))
        [manifest] = _document(source, "manifest.json")
        entries = []
        for tag, changed in settings.items():
            config = _document(source, manifest["Config"])
            content = json.dumps({**config, "config": {**config["config"], **changed}}).encode()
            name = f"{hashlib.sha256(content).hexdigest()}.json"
            _add(target, name, content)
            entries.append({**manifest, "Config": name, "RepoTags": [tag]})
        _add(target, "manifest.json", json.dumps(entries).encode())


def _document(archive: tarfile.TarFile, name: str) -> Any:
    member = archive.extractfile(name)
    assert member is not None, name
    return json.load(member)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
