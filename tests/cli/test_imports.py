"""What a command loads before it has done anything: the time that somebody who types it waits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulator import manifests
from tests.simulator.manifests import gang, node

HEAVY = {"kubernetes", "aiohttp", "kopf", "httpx", "cryptography", "prometheus_client", "rich", "cel", "asyncio"}
OF_AN_OPERATOR = HEAVY - {"kubernetes", "aiohttp", "asyncio"}
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {token: t}}]
"""
PROGRAM = """
import sys
from muster.cli import main
sys.argv = ["muster", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print("loaded", *sys.modules, file=sys.stderr)
"""


def loaded(*arguments: str) -> set[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stderr
    return set(said.splitlines()[-1].split())


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_bytes(manifests.text(node("n1", cpu=1), gang("g", 2)))
    return str(file)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    return str(file)


@pytest.mark.parametrize("command", [[], ["explain"], ["simulate"], ["snapshot"], ["run"], ["submit"], ["crds"]])
def test_help_loads_nothing_of_what_the_commands_need(command: list[str]) -> None:
    modules = loaded(*command, "--help")
    assert modules & {*HEAVY, "yaml", "msgspec", "muster.scheduler", "muster.api", "muster.kube"} == set()


def test_a_simulation_loads_nothing_that_speaks_to_a_cluster(cluster: str) -> None:
    assert loaded("simulate", cluster) & {*HEAVY, "muster.kube.client"} == set()


def test_neither_does_an_explanation_of_files(cluster: str) -> None:
    assert loaded("explain", "podgroup/g", "--from", cluster) & {*HEAVY, "muster.kube.client"} == set()


@pytest.mark.parametrize("command", [["explain", "podgroup/g"], ["snapshot"]])
def test_who_asks_a_cluster_loads_nothing_of_an_operator(kubeconfig: str, command: list[str]) -> None:
    modules = loaded(*command, "--kubeconfig", kubeconfig)
    assert modules & OF_AN_OPERATOR == set()
    assert "muster.kube.client" in modules
