from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.node.image_archive import LAYER, ImageConfig, write_image
from tests.cluster.process import CommandFailedError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for folder in ("bin", "proc/1", "dev", "sys/kernel", "usr/proc"):
        (root / folder).mkdir(parents=True)
    (root / "bin/program").write_bytes(b"x" * 1000)
    (root / "bin/program").chmod(0o755)
    (root / "bin/link").symlink_to("program")
    (root / "proc/1/cmdline").write_text("of the host")
    (root / "usr/proc/file").write_text("not the kernel's")
    return root


def read_json(archive: tarfile.TarFile, name: str) -> Any:
    member = archive.extractfile(name)
    assert member is not None
    return json.load(member)


def layer_bytes(archive: tarfile.TarFile) -> bytes:
    member = archive.extractfile(LAYER)
    assert member is not None
    return member.read()


def test_the_archive_names_its_layer_by_the_digest_of_what_it_holds(root: Path, tmp_path: Path) -> None:
    write_image(tmp_path / "image.tar", "localhost/some:1", root, ImageConfig())
    with tarfile.open(tmp_path / "image.tar") as archive:
        (entry,) = read_json(archive, "manifest.json")
        config = read_json(archive, entry["Config"])
        digest = hashlib.sha256(layer_bytes(archive)).hexdigest()
    assert entry["RepoTags"] == ["localhost/some:1"]
    assert entry["Layers"] == [LAYER]
    assert config["rootfs"] == {"type": "layers", "diff_ids": [f"sha256:{digest}"]}


def test_the_layer_holds_the_folder_with_modes_links_and_numeric_owners(root: Path, tmp_path: Path) -> None:
    write_image(tmp_path / "image.tar", "localhost/some:1", root, ImageConfig())
    with tarfile.open(tmp_path / "image.tar") as archive:
        (tmp_path / "layer.tar").write_bytes(layer_bytes(archive))
    with tarfile.open(tmp_path / "layer.tar") as layer:
        program, link = layer.getmember("./bin/program"), layer.getmember("./bin/link")
    assert (program.mode, program.size, program.uname) == (0o755, 1000, "")
    assert link.linkname == "program"


def test_what_the_kernel_shows_is_left_out_and_its_folders_stay(root: Path, tmp_path: Path) -> None:
    write_image(tmp_path / "image.tar", "localhost/some:1", root, ImageConfig())
    with tarfile.open(tmp_path / "image.tar") as archive:
        (tmp_path / "layer.tar").write_bytes(layer_bytes(archive))
    with tarfile.open(tmp_path / "layer.tar") as layer:
        names = set(layer.getnames())
    assert {"./proc", "./sys", "./dev", "./usr/proc/file"} <= names
    assert not {"./proc/1", "./sys/kernel"} & names


def test_the_configuration_says_only_what_was_asked_for() -> None:
    config = ImageConfig(("/init",), environment={"A": "b"}, stop_signal="SIGRTMIN+3").document("00")
    assert config["config"] == {"Entrypoint": ["/init"], "Env": ["A=b"], "StopSignal": "SIGRTMIN+3"}


def test_a_folder_that_cannot_be_read_is_an_error_and_not_a_smaller_image(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match="missing"):
        write_image(tmp_path / "image.tar", "localhost/some:1", tmp_path / "missing", ImageConfig())
