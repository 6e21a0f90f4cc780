"""The network between the nodes of clusters on our own engine, and its way through the machine's packet filter.

Our engine keeps its hands off iptables, since the chains that an engine makes, flushes and fills are the same for every
engine of a machine. Instead three rules of our own let packets pass where another engine or the site drops what is
forwarded, and give the nodes the machine's address outside. All name our bridge, by which they are found again.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from tests.cluster.node.docker import Docker
from tests.cluster.process import CommandFailedError, run

_NETWORK = "kind"
"""The name under which kind looks for its network, and makes one only if there is none."""


@dataclass(frozen=True, slots=True)
class NodeLink:
    """The network of an engine's nodes; `bridge` is the name of its interface, of at most fifteen characters."""

    docker: Docker
    bridge: str

    def open(self) -> None:
        """Make the network unless it is there, and the rules that it needs."""
        if not self._exists():
            name = f"com.docker.network.bridge.name={self.bridge}"
            self.docker.run("network", "create", "--driver", "bridge", "--opt", name, _NETWORK)
        subnet = "{{(index .IPAM.Config 0).Subnet}}"
        found = self.docker.run("network", "inspect", "--format", subnet, _NETWORK).strip()
        for table, chain, rule in self._rules(found):
            try:
                _iptables(table, "--check", chain, *rule)
            except CommandFailedError:
                _iptables(table, "--insert", chain, *rule)

    def close(self) -> None:
        """Remove the network, which must be empty, and the rules."""
        if self._exists():
            self.docker.run("network", "rm", _NETWORK)
        for table, rule in rules_of(self.bridge, run(["iptables-save"])):
            _iptables(table, "--delete", *rule)

    def _exists(self) -> bool:
        return bool(self.docker.run("network", "ls", "--quiet", "--filter", f"name=^{_NETWORK}$"))

    def _rules(self, subnet: str) -> list[tuple[str, str, list[str]]]:
        answers = ["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"]
        return [
            ("filter", "FORWARD", ["-i", self.bridge, "-j", "ACCEPT"]),
            ("filter", "FORWARD", ["-o", self.bridge, *answers, "-j", "ACCEPT"]),
            ("nat", "POSTROUTING", ["-s", subnet, "!", "-o", self.bridge, "-j", "MASQUERADE"]),
        ]


def rules_of(bridge: str, saved: str) -> list[tuple[str, list[str]]]:
    """Return the table, and the chain and words, of each rule in an iptables-save text that names the bridge."""
    found, table = [], ""
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith("-A ") and bridge in (words := shlex.split(line)):
            found.append((table, words[1:]))
    return found


def _iptables(table: str, *words: str) -> None:
    run(["iptables", "--wait", "--table", table, *words])
