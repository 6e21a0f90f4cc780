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


def test_what_names_the_cluster_is_named_and_described_alike_by_all_commands() -> None:
    explain, snapshot = (_options(command) for command in ("explain", "snapshot"))
    for option in ("--kubeconfig", "--context", "--muster-namespace", "--deployment"):
        assert explain[option] == snapshot[option]
        assert explain[option]


def test_the_old_name_of_an_option_is_not_shown() -> None:
    assert "--namespace" not in _options("snapshot")
    assert "--namespace" in _options("explain")


def _options(command: str) -> dict[str, str]:
    """By its long name, what is said of each option."""
    shown = CliRunner().invoke(app, [command, "--help"], terminal_width=200).output
    lines = (re.match(r"\s+(?:-\w, )?(--[\w-]+) (.*)", line) for line in shown.splitlines())
    return {line[1]: line[2].split("  ", 1)[-1].strip() for line in lines if line}
