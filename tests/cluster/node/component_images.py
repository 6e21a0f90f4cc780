"""The images of Kubernetes' own components that a kind node carries: a binary and what it needs, nothing else.

Their tools (iptables, ip, conntrack) and libraries come from the node's own root file system, so that both sides of
the host network agree on one flavour of iptables.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.node.image_archive import ImageConfig, write_image
from tests.cluster.node.root_file_system import chroot
from tests.cluster.process import run

FILES = Path(__file__).parent / "files"
NODE_NET_TAG = "localhost/node-net:1"
PROGRAMS = (
    *("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubeadm"),
    *("etcd", "coredns", "pause"),
)

_XTABLES = "/usr/lib/x86_64-linux-gnu/xtables"
_IPTABLES_NAMES = [f"{tool}{end}" for tool in ("iptables", "ip6tables") for end in ("", "-save", "-restore")]
_NETWORK_TOOLS = ("/usr/sbin/xtables-nft-multi", "/usr/sbin/nft", "/usr/sbin/conntrack", "/usr/bin/ip")
_SHELL_COMMANDS = ("sh", "cat", "mv", "sleep")


@dataclass(frozen=True, slots=True)
class ComponentImages:
    """Writes the components' images as archives into `folder`.

    `binaries` are the programs of PROGRAMS, `node_root` a root file system with the network tools, and `pause_tag` the
    name under which the node's container runtime looks for the pause image.
    """

    folder: Path
    binaries: Mapping[str, Path]
    node_root: Path
    kubernetes: str
    pause_tag: str

    def write(self) -> list[Path]:
        """Write all archives and return their paths."""
        tags = self._tags()
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"):
            self._write(name, tags[name], self._program_root(name), ImageConfig())
        coredns = self._program_root("coredns", "coredns")
        self._write("coredns", tags["coredns"], coredns, ImageConfig(entrypoint=("/coredns",)))
        self._write("kube-proxy", tags["kube-proxy"], self._network_root("kube-proxy"), ImageConfig())
        self._write("node-net", NODE_NET_TAG, self._network_root("node-net"), ImageConfig(("/node-net.sh",)))
        self._write("pause", self.pause_tag, self._program_root("pause", "pause"), ImageConfig(("/pause",)))
        return sorted(self.folder.glob("*.tar"))

    def _tags(self) -> dict[str, str]:
        """Return the names that kubeadm expects, by component: registry.k8s.io/coredns/coredns:v1 is coredns'."""
        listed = run([self.binaries["kubeadm"], "config", "images", "list", "--kubernetes-version", self.kubernetes])
        return {tag.rpartition(":")[0].rpartition("/")[2]: tag for tag in listed.split()}

    def _write(self, name: str, tag: str, root: Path, config: ImageConfig) -> None:
        write_image(self.folder / f"{name}.tar", tag, root, config)
        shutil.rmtree(root)

    def _empty_root(self, name: str) -> Path:
        root = self.folder / f"{name}.root"
        for folder in ("etc", "tmp", "usr/local/bin"):
            (root / folder).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
        return root

    def _program_root(self, name: str, path: str | None = None) -> Path:
        root = self._empty_root(name)
        shutil.copy(self.binaries[name], root / (path or f"usr/local/bin/{name}"))
        return root

    def _network_root(self, name: str) -> Path:
        """Return a root with the network tools and a small shell, and the program or script `name`."""
        if name == "node-net":
            root = self._empty_root(name)
            shutil.copy(FILES / "node-net.sh", root / "node-net.sh")
            (root / "node-net.sh").chmod(0o755)
        else:
            root = self._program_root(name)
        extensions = [f"{_XTABLES}/{path.name}" for path in (self.node_root / _XTABLES[1:]).glob("*.so")]
        # The extensions are loaded at run time: what they need does not show in the programs that load them.
        wanted = [*_NETWORK_TOOLS, *extensions]
        for path in {*wanted, *shared_libraries(self.node_root, wanted)}:
            _copy(self.node_root, root, path)
        for link in _IPTABLES_NAMES:
            (root / "usr/sbin" / link).symlink_to("xtables-nft-multi")
        _add_shell(self.node_root, root)
        return root


def shared_libraries(root: Path, programs: Iterable[str]) -> set[str]:
    """Return the paths, inside the root file system, of all libraries that the programs and libraries load."""
    printed = chroot(root, "ldd", *programs)
    words = (word for line in printed.splitlines() if line.startswith("\t") for word in line.split())
    return {word for word in words if word.startswith("/")}


def _copy(source: Path, target: Path, path: str) -> None:
    """Copy a file to the path by which it is asked for; the (relative) links that lead to it in the source are not."""
    to = target / path.lstrip("/")
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / path.lstrip("/"), to)


def _add_shell(source: Path, target: Path) -> None:
    _copy(source, target, "/bin/busybox")
    for command in _SHELL_COMMANDS:
        (target / "bin" / command).symlink_to("busybox")
