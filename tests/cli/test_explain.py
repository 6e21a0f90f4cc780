"""`muster explain` on files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from muster.cli import app
from tests.simulator import manifests
from tests.simulator.manifests import gang, node


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.yaml"
    file.write_bytes(manifests.text(node("n1", cpu=1), gang("g", 2)))
    return file


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


def test_plain_words_by_default(cluster: Path) -> None:
    result = run("podgroup/g", "--from", str(cluster))
    assert result.exit_code == 0
    assert "advice: change the request" in result.stdout


def test_json_for_machines(cluster: Path) -> None:
    result = run("pod/g-w-1", "--from", str(cluster), "-o", "json")
    assert json.loads(result.stdout)["reason"]["class"] == "never"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["podgroup/x"], 1, "podgroup default/x does not exist"),
        (["podgroup/g", "-n", "other"], 1, "podgroup other/g does not exist"),
        (["queue/x"], 2, "is not KIND/NAME"),
        (["podgroup/g", "--now", "soon"], 2, "no RFC 3339 time"),
        (["podgroup/g", "--conf", "/nowhere/x.yaml"], 2, "/nowhere/x.yaml"),
        (["podgroup/g", "--from", "/nowhere/c.yaml"], 2, "/nowhere/c.yaml"),
    ],
)
def test_what_can_not_be_answered(cluster: Path, arguments: list[str], status: int, words: str) -> None:
    result = run(*arguments, "--from", str(cluster))
    assert result.exit_code == status
    assert words in result.stderr


def test_that_an_extender_is_not_asked_is_said(cluster: Path, tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.yaml"
    conf.write_text("actions: allocate\ntiers: [{plugins: [{name: gang}, {name: extender}]}]\n")
    result = run("podgroup/g", "--from", str(cluster), "--conf", str(conf))
    assert result.exit_code == 0
    assert "left out what plugin 'extender' would say" in result.stderr
