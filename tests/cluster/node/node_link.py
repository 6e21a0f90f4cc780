"""The network between the nodes of clusters on our own engine, and its way through the machine's packet filter.

Our engine keeps its hands off iptables, since the chains that an engine makes, flushes and fills are the same for every
engine of a machine. Instead three rules of our own let packets pass where another engine or the site drops what is
forwarded, and give the nodes the machine's address outside. All name our bridge, by which they are found again.
"""

from __future__ import annotations

import shlex

from tests.cluster.node.docker import Docker
from tests.cluster.process import CommandFailedError, run

BRIDGE = "muster-kind"

_NETWORK = "kind"
"""The name under which kind looks for its network, and makes one only if there is none."""


def open_link(docker: Docker) -> None:
    """Make the network unless it is there, and the rules that it needs."""
    if not docker.run("network", "ls", "--quiet", "--filter", f"name=^{_NETWORK}$"):
        bridge = f"com.docker.network.bridge.name={BRIDGE}"
        docker.run("network", "create", "--driver", "bridge", "--opt", bridge, _NETWORK)
    subnet = docker.run("network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}", _NETWORK).strip()
    for table, chain, rule in _rules(subnet):
        try:
            _iptables(table, "--check", chain, *rule)
        except CommandFailedError:
            _iptables(table, "--insert", chain, *rule)


def close_link(docker: Docker) -> None:
    """Remove the network, which must be empty, and the rules."""
    if docker.run("network", "ls", "--quiet", "--filter", f"name=^{_NETWORK}$"):
        docker.run("network", "rm", _NETWORK)
    for table, rule in rules_of_bridge(run(["iptables-save"])):
        _iptables(table, "--delete", *rule)


def rules_of_bridge(saved: str) -> list[tuple[str, list[str]]]:
    """Return the table, and the chain and words, of each rule in an iptables-save text that names our bridge."""
    found, table = [], ""
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith("-A ") and BRIDGE in (words := shlex.split(line)):
            found.append((table, words[1:]))
    return found


def _rules(subnet: str) -> list[tuple[str, str, list[str]]]:
    answers = ["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"]
    return [
        ("filter", "FORWARD", ["-i", BRIDGE, "-j", "ACCEPT"]),
        ("filter", "FORWARD", ["-o", BRIDGE, *answers, "-j", "ACCEPT"]),
        ("nat", "POSTROUTING", ["-s", subnet, "!", "-o", BRIDGE, "-j", "MASQUERADE"]),
    ]


def _iptables(table: str, *words: str) -> None:
    run(["iptables", "--wait", "--table", table, *words])
