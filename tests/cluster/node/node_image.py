"""kind's node image where kind's own is out of reach: Debian with systemd, containerd, kubelet and all images inside.

It follows the recipe in kind's module (images/base/Dockerfile) with kind's own files, and differs where it must:
Debian's containerd and CNI plugins, a pod network of ours (files/node-net.sh), and containers that keep their memory
kill score, since the machine may not allow lowering it. kind's default configuration works on it unchanged.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.cluster import versions
from tests.cluster.cache import Cache, digest
from tests.cluster.gobuild import RECIPE, go_binaries, module_source
from tests.cluster.node.component_images import FILES, PROGRAMS, ComponentImages
from tests.cluster.node.image_archive import PATH, ImageConfig, write_image
from tests.cluster.node.root_file_system import chroot, make_root, remove, temporary_copy
from tests.cluster.process import CommandFailedError, run, start
from tests.cluster.progress import Steps

_RECIPE = "2"
_PACKAGES = (
    *("systemd", "util-linux", "mount", "kmod", "libseccomp2", "procps", "bash", "ca-certificates", "curl", "jq"),
    *("conntrack", "iptables", "nftables", "iproute2", "ethtool", "socat", "e2fsprogs", "pigz", "busybox-static"),
    *("containerd", "runc", "containernetworking-plugins"),
)
_NODE_PROGRAMS = ("kubelet", "kubeadm", "kubectl")
ALL_PROGRAMS = tuple(dict.fromkeys([*PROGRAMS, *_NODE_PROGRAMS]))
_UNWANTED = (
    "usr/lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
    "usr/lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "usr/lib/systemd/system/local-fs.target.wants/*",
    "usr/lib/systemd/system/sockets.target.wants/*udev*",
    "usr/lib/systemd/system/sockets.target.wants/*initctl*",
    "usr/lib/systemd/system/basic.target.wants/*",
    "usr/lib/systemd/system/containerd.service",
    # What these set, a node would set for the whole machine.
    "usr/lib/sysctl.d/*",
    "etc/sysctl.d/99-sysctl.conf",
)
_FILES = [path.read_text() for path in sorted(FILES.iterdir())]
_DIGEST = digest(_RECIPE, RECIPE, *_PACKAGES, *_UNWANTED, *_FILES)
_CONTAINERD_START_SECONDS = 20.0

TAG = f"localhost/kindest-node:{versions.KUBERNETES}-{_DIGEST}"


def node_image(cache: Cache, steps: Steps) -> Path:
    """Return the archive of the image TAG, built if the cache lacks it. Needs root."""

    def build(folder: Path) -> None:
        binaries = go_binaries(ALL_PROGRAMS, cache=cache, steps=steps)
        kind_files = module_source("sigs.k8s.io/kind") / "images/base/files"
        system = node_root(cache, steps)
        title = f"Building the node image of Kubernetes {versions.KUBERNETES}"
        with steps.step(title), temporary_copy(system, folder) as root:
            _copy_kind_files(kind_files, root)
            _configure_systemd(root)
            _configure_containerd(root)
            _install_programs(root, binaries)
            _import_component_images(folder, root, binaries)
            write_image(folder / "image.tar", TAG, root, _config())

    key = (versions.KUBERNETES, "kind", versions.KIND, versions.DEBIAN, _DIGEST)
    return cache.entry("node-image", *key, build=build) / "image.tar"


def node_root(cache: Cache, steps: Steps) -> Path:
    """Return the root file system of a node before anything but Debian's packages is in it; it needs no program."""

    def build(folder: Path) -> None:
        make_root(folder / "root", _PACKAGES, cache, steps)

    return cache.entry("node-root", versions.DEBIAN, digest(*_PACKAGES), build=build) / "root"


def _config() -> ImageConfig:
    return ImageConfig(
        entrypoint=("/usr/local/bin/entrypoint", "/sbin/init"),
        environment={"PATH": PATH, "container": "docker"},
        stop_signal="SIGRTMIN+3",
    )


def _copy_kind_files(files: Path, root: Path) -> None:
    """Copy kind's own files with the modes that its Dockerfile gives them."""
    for source in sorted(path for path in files.rglob("*") if path.is_file()):
        relative = source.relative_to(files)
        target = root / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755 if relative.parent.name == "bin" else 0o644)


def _configure_systemd(root: Path) -> None:
    """Leave only the services that a node needs."""
    for pattern in _UNWANTED:
        remove(root, pattern)
    with (root / "etc/systemd/journald.conf").open("a") as journald:
        journald.write("ReadKMsg=no\n")
    (root / "usr/sbin/init").symlink_to("/usr/lib/systemd/systemd")
    chroot(root, "systemctl", "enable", "kubelet.service", "containerd.service", "undo-mount-hacks.service")
    # It would register programs with the kernel, for the whole machine.
    chroot(root, "systemctl", "mask", "systemd-binfmt.service")


def _configure_containerd(root: Path) -> None:
    for program in ("containerd", "ctr", "containerd-shim-runc-v2"):
        (root / "usr/local/bin" / program).symlink_to(f"/usr/bin/{program}")
    (root / "opt/cni").mkdir(parents=True)
    (root / "opt/cni/bin").symlink_to("/usr/lib/cni")
    configuration = root / "etc/containerd/config.toml"
    # Without CAP_SYS_RESOURCE no container starts that asks for a lower score than its parent's.
    asked, granted = "restrict_oom_score_adj = false", "restrict_oom_score_adj = true"
    text = configuration.read_text()
    if asked not in text:
        raise ValueError(f"kind {versions.KIND} no longer sets {asked!r} in its containerd configuration")
    configuration.write_text(text.replace(asked, granted))
    base = json.loads(chroot(root, "ctr", "oci", "spec"))
    base.setdefault("hooks", {}).setdefault("createContainer", []).append({"path": "/kind/bin/mount-product-files.sh"})
    del base["process"]["rlimits"]
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(base))


def _install_programs(root: Path, binaries: Mapping[str, Path]) -> None:
    for name in _NODE_PROGRAMS:
        shutil.copy(binaries[name], root / "usr/bin" / name)
    (root / "kind/version").write_text(versions.KUBERNETES)
    for folder in ("kind/manifests", "etc/kubernetes/manifests"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for name in ("default-cni.yaml", "default-storage.yaml"):
        shutil.copy(FILES / name, root / "kind/manifests" / name)


def _import_component_images(folder: Path, root: Path, binaries: Mapping[str, Path]) -> None:
    """Put the components' images into the node's own image store, as its containerd will find it."""
    configuration = tomllib.loads((root / "etc/containerd/config.toml").read_text())
    pause = configuration["plugins"]["io.containerd.grpc.v1.cri"]["sandbox_image"]
    archives = folder / "components"
    archives.mkdir()
    images = ComponentImages(archives, binaries, root, versions.KUBERNETES, pause).write()
    with _containerd(root / "var/lib/containerd") as address:
        for image in images:
            pinned = "--label=io.cri-containerd.pinned=pinned"
            to_store = ("images", "import", pinned, "--all-platforms", "--no-unpack", "--digests", image)
            run(["ctr", "--address", address, "--namespace", "k8s.io", *to_store])
    shutil.rmtree(archives)


@contextlib.contextmanager
def _containerd(store: Path) -> Iterator[Path]:
    """Run the host's containerd on an image store until the block ends, and give its socket."""
    # A socket's path must be short, which a path in the cache may not be.
    with tempfile.TemporaryDirectory(prefix="muster-containerd-") as name:
        state = Path(name)
        configuration, address = state / "config.toml", state / "containerd.sock"
        configuration.write_text(
            f'version = 2\nroot = "{store}"\nstate = "{state}/state"\n'
            f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "{address}"\n'
        )
        containerd = start("containerd", ["containerd", "--config", configuration], state)
        try:
            _wait_until_served(address)
            yield address
        finally:
            containerd.stop()


def _wait_until_served(address: Path) -> None:
    deadline = time.monotonic() + _CONTAINERD_START_SECONDS
    while True:
        try:
            run(["ctr", "--address", address, "version"])
        except CommandFailedError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"containerd does not answer: {error}") from error
            time.sleep(0.1)
        else:
            return
