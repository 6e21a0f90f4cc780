"""`muster snapshot` where there is no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from muster.cli.snapshot import snapshot
from muster.kube.client import ApiClient
from muster.simulator.collecting import Collection

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {}}]
"""


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(snapshot)
    return app


def test_without_a_usable_kubeconfig_the_status_is_1(app: typer.Typer, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--kubeconfig", str(tmp_path / "nothing")])
    assert result.exit_code == 1
    assert str(tmp_path / "nothing") in result.stderr


def test_a_cluster_that_does_not_answer_ends_with_status_1(app: typer.Typer, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    result = CliRunner().invoke(app, ["--kubeconfig", str(kubeconfig), "-o", str(tmp_path / "s.zip")])
    assert result.exit_code == 1
    assert "Unreachable" in result.stderr
    assert not (tmp_path / "s.zip").exists()


@pytest.mark.parametrize("name", ["--muster-namespace", "--namespace", "-n"])
def test_where_muster_is_can_be_said_by_its_old_names_too(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    asked: list[str] = []

    async def collect(client: ApiClient, *, namespace: str, deployment: str) -> Collection:
        asked.append(f"{namespace}/{deployment}")
        return Collection()

    monkeypatch.setattr("muster.simulator.collecting.collect", collect)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    result = CliRunner().invoke(app, ["--kubeconfig", str(kubeconfig), name, "gangs", "-o", str(tmp_path / "s.zip")])
    assert (result.exit_code, asked) == (0, ["gangs/muster"])


def test_a_config_map_without_a_configuration_is_bad_usage(app: typer.Typer, tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    conf.write_text("apiVersion: v1\nkind: ConfigMap\ndata: {a: b, c: d}\n")
    result = CliRunner().invoke(app, ["--conf", str(conf)])
    assert result.exit_code == 2
    assert f"{conf}: data: " in result.stderr


def test_a_configuration_file_that_is_not_there_is_bad_usage(app: typer.Typer, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--conf", str(tmp_path / "scheduler.yaml")])
    assert result.exit_code == 2
    assert "scheduler.yaml: No such file" in result.stderr
