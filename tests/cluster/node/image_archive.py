"""Writes container images without a container engine, in the format that `docker save` writes.

An image is one uncompressed layer made from a folder, plus its configuration. The layer is streamed: it is read once,
hashed on the way, and nothing is written twice, so that an image of a gigabyte takes seconds. Owners, modes and times
are kept (Python trusts a compiled file only while the source's time is unchanged).
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tests.cluster.process import CommandFailedError

LAYER = "layer/layer.tar"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_CHUNK = 1 << 20
_KERNEL_FOLDERS = ("proc", "sys", "dev")


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """How a container of the image starts, in Docker's words."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = ""
    working_directory: str = ""
    stop_signal: str = ""

    def document(self, layer_digest: str) -> dict[str, object]:
        """Return the image's configuration file; `layer_digest` is the SHA-256 of the uncompressed layer, in hex."""
        settings = {
            "Entrypoint": list(self.entrypoint),
            "Cmd": list(self.command),
            "Env": [f"{name}={value}" for name, value in self.environment.items()],
            "User": self.user,
            "WorkingDir": self.working_directory,
            "StopSignal": self.stop_signal,
        }
        return {
            "architecture": "amd64",
            "os": "linux",
            "config": {name: value for name, value in settings.items() if value},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        }


def write_image(archive: Path, tag: str, root: Path, config: ImageConfig) -> None:
    """Write the folder `root` as the image `tag` into the file `archive`.

    The content of proc, sys and dev is left out. Raises CommandFailedError when `root` cannot be read whole.
    """
    with archive.open("wb") as output:
        digest = _write_layer(output, root)
        document = json.dumps(config.document(digest)).encode()
        name = f"{hashlib.sha256(document).hexdigest()}.json"
        manifest = [{"Config": name, "RepoTags": [tag], "Layers": [LAYER]}]
        _write_member(output, name, document)
        _write_member(output, "manifest.json", json.dumps(manifest).encode())
        output.write(bytes(2 * tarfile.BLOCKSIZE))


def _write_layer(output: BinaryIO, root: Path) -> str:
    """Stream the folder as a member of the archive, fill in its size afterwards, and return its SHA-256."""
    start = output.tell()
    output.write(_header(LAYER, 0))
    digest, size = _copy_hashed(root, output)
    output.write(bytes(-size % tarfile.BLOCKSIZE))
    end = output.tell()
    output.seek(start)
    output.write(_header(LAYER, size))
    output.seek(end)
    return digest


def _copy_hashed(root: Path, output: BinaryIO) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    excluded = [f"--exclude=./{folder}/*" for folder in _KERNEL_FOLDERS]
    command = ["tar", "--create", "--numeric-owner", "--sort=name", "--anchored", *excluded, "-C", str(root), "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as tar:
        assert tar.stdout is not None
        assert tar.stderr is not None
        while chunk := tar.stdout.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            output.write(chunk)
        errors = tar.stderr.read().decode(errors="replace")
    if tar.returncode != 0:
        raise CommandFailedError(f"{' '.join(command)} ended with status {tar.returncode}:\n{errors[-2000:]}")
    return digest.hexdigest(), size


def _write_member(output: BinaryIO, name: str, content: bytes) -> None:
    output.write(_header(name, len(content)))
    output.write(content)
    output.write(bytes(-len(content) % tarfile.BLOCKSIZE))


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(format=tarfile.GNU_FORMAT)
