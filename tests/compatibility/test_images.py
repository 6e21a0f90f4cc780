"""Images made of another one's layer."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from tests.cluster.node.image_archive import ImageConfig, write_image
from tests.compatibility.images import RAY, ray_image_of, write_variants


def test_variants_share_the_layer_and_differ_in_what_was_changed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("content")
    config = ImageConfig(command=("bash",), environment={"PATH": "/bin"})
    write_image(tmp_path / "image.tar", "localhost/ray:1", root, config)

    changes: dict[str, dict[str, object]] = {
        "localhost/a:1": {"WorkingDir": "/home/ray"},
        "localhost/b:1": {"Cmd": ["redis-server"]},
    }
    write_variants(tmp_path / "image.tar", tmp_path / "variants.tar", changes)

    with tarfile.open(tmp_path / "image.tar") as image, tarfile.open(tmp_path / "variants.tar") as variants:
        names = variants.getnames()
        [a, b] = json.load(variants.extractfile("manifest.json") or NotImplemented)
        assert (a["RepoTags"], b["RepoTags"]) == (["localhost/a:1"], ["localhost/b:1"])
        assert a["Layers"] == b["Layers"] == [names[0]]
        layers = [archive.extractfile(names[0]) for archive in (image, variants)]
        assert len({layer.read() for layer in layers if layer}) == 1
        configs = [json.load(variants.extractfile(one["Config"]) or NotImplemented)["config"] for one in (a, b)]
    assert configs[0] == {"Cmd": ["bash"], "Env": ["PATH=/bin"], "WorkingDir": "/home/ray"}
    assert configs[1] == {"Cmd": ["redis-server"], "Env": ["PATH=/bin"]}


def test_a_cluster_that_pulls_rays_image_has_it_as_it_is() -> None:
    assert ray_image_of("rayproject/ray:2.60.0-py311") == "rayproject/ray:2.60.0-py311"
    assert ray_image_of("localhost/ray:2.60.0") == RAY
