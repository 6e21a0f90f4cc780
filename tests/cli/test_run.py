"""What `muster run` makes of its options."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from muster import app as composition
from muster.app import Options, controller_options
from muster.cli import app

RUNNER = CliRunner()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """What the operator was started with; it ends at once."""
    seen: list[Options] = []

    async def operate(options: Options) -> int:
        seen.append(options)
        return 0

    monkeypatch.setattr(composition, "operate", operate)
    return seen


def run(*arguments: str) -> tuple[int, str]:
    done = RUNNER.invoke(app, ["run", *arguments], env={"COLUMNS": "200"})
    return done.exit_code, done.stderr


@pytest.mark.parametrize(
    ("arguments", "created"), [([], True), (["--create-queues"], True), (["--no-create-queues"], False)]
)
def test_missing_queues_are_created_unless_told_not_to(
    asked: list[Options], arguments: list[str], created: bool
) -> None:
    assert run(*arguments) == (0, "")
    assert controller_options(asked[0], "muster:1").create_queues is created
