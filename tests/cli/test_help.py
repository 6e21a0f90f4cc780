"""What `--help` shows."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from muster.cli import app

COMMANDS = ("run", "submit", "crds", "simulate", "snapshot", "explain")


@pytest.mark.parametrize("command", COMMANDS)
def test_no_option_is_described_by_a_type_of_python(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"]).output
    assert re.findall(r"<(?:str|int|float|path|list|bool)\b[^>]*>", shown) == []


@pytest.mark.parametrize("command", ["snapshot", "explain"])
def test_the_namespace_of_muster_is_named_alike_by_all_commands(command: str) -> None:
    assert "--muster-namespace" in CliRunner().invoke(app, [command, "--help"]).output
