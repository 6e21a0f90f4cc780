"""`muster crds` as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from muster.api.crds import generate
from muster.cli.crds import crds


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(crds)
    return app


def test_without_a_directory_one_stream_that_kubectl_can_read_goes_to_stdout(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    kinds = [document["spec"]["names"]["kind"] for document in yaml.safe_load_all(result.stdout)]
    assert kinds == ["RayCluster", "RayJob", "PodGroup", "Queue"]


def test_a_directory_is_made_and_gets_one_file_a_kind(app: typer.Typer, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "crds"
    result = CliRunner().invoke(app, ["--output", str(target)])
    assert result.exit_code == 0
    assert {path.name: path.read_text(encoding="utf-8") for path in target.iterdir()} == generate()
    assert all(str(target / name) in result.stdout.replace("\n", " ") for name in generate())


def test_a_directory_that_can_not_be_made_ends_with_status_1_and_its_name(app: typer.Typer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = CliRunner().invoke(app, ["--output", str(tmp_path / "file" / "crds")])
    assert result.exit_code == 1
    assert str(tmp_path / "file" / "crds") in result.output


def test_a_file_in_place_of_the_directory_is_bad_usage(app: typer.Typer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert CliRunner().invoke(app, ["--output", str(tmp_path / "file")]).exit_code == 2
