from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.binaries import PROGRAMS
from tests.cluster.node import node_image
from tests.cluster.node.root_file_system import remove


def test_every_program_of_a_node_is_named_once_and_can_be_built() -> None:
    assert len(set(node_image.ALL_PROGRAMS)) == len(node_image.ALL_PROGRAMS)
    assert set(node_image.ALL_PROGRAMS) == set(PROGRAMS) - {"kind", "kwok"}


@pytest.mark.parametrize(
    ("file", "mode"),
    [("usr/local/bin/entrypoint", 0o755), ("kind/bin/hook.sh", 0o755), ("etc/containerd/config.toml", 0o644)],
)
def test_kinds_files_get_the_modes_that_its_dockerfile_gives_them(tmp_path: Path, file: str, mode: int) -> None:
    source, root = tmp_path / "files", tmp_path / "root"
    (source / file).parent.mkdir(parents=True)
    (source / file).touch(mode=0o444)
    node_image._copy_kind_files(source, root)
    assert (root / file).stat().st_mode & 0o777 == mode


def test_removing_empties_folders_and_follows_no_link_out_of_the_root(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "var/log/apt").mkdir(parents=True)
    (root / "var/log/dpkg.log").touch()
    outside.mkdir()
    (outside / "kept").touch()
    (root / "var/log/link").symlink_to(outside)
    remove(root, "var/log/*")
    assert list((root / "var/log").iterdir()) == []
    assert (outside / "kept").exists()
