"""What a scheduler was told when it was started."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from muster.scheduler.conf import DEFAULT
from muster.simulator.command_line import NOTHING_SAID, CommandLine, read_command_line
from muster.simulator.input_error import InputError
from muster.simulator.snapshot import snapshot_zip
from muster.simulator.sources import read_sources

FULL = CommandLine(5.0, 0.0, 2.5, ("a", "b"))


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], NOTHING_SAID),
        (["run", "--components", "scheduler"], NOTHING_SAID),
        (["run", "--starvation-timeout=0"], CommandLine(starvation_timeout=0.0)),
        (["run", "--starvation-timeout", "3600"], CommandLine(starvation_timeout=3600.0)),
        (["--admission-timeout=1", "--admission-timeout", "2"], CommandLine(admission_timeout=2.0)),
        (["--gang-repair-timeout"], NOTHING_SAID),
        (["--scheduler-name", "a", "--scheduler-name=b"], CommandLine(scheduler_names=("a", "b"))),
        (FULL.flags(), FULL),
    ],
)
def test_flags_are_found_in_either_form_and_the_last_holds(arguments: list[str], found: CommandLine) -> None:
    assert read_command_line(arguments) == found


def test_what_is_said_is_laid_over_a_configuration_and_the_rest_stays() -> None:
    laid = CommandLine(starvation_timeout=0.0, admission_timeout=7.0).lay_over(DEFAULT)
    assert (laid.starvation_timeout, laid.admission_timeout) == (0.0, 7.0)
    assert (laid.gang_repair_timeout, laid.tiers) == (DEFAULT.gang_repair_timeout, DEFAULT.tiers)


def test_a_number_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="--admission-timeout: 'soon' is no number"):
        read_command_line(["--admission-timeout=soon"])


@pytest.mark.parametrize("said", [NOTHING_SAID, FULL])
def test_a_snapshot_brings_it_along(tmp_path: Path, said: CommandLine) -> None:
    path = tmp_path / "s.zip"
    path.write_bytes(snapshot_zip({}, None, 0.0, said))
    found = read_sources([str(path)])
    assert (found.command_line, found.documents) == (said, [])
    with zipfile.ZipFile(path) as archive:
        assert ("flags.txt" in archive.namelist()) is (said is FULL)


def test_a_snapshot_with_flags_that_can_not_be_read_is_refused_by_their_name(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("flags.txt", "--starvation-timeout=x\n")
    path = tmp_path / "s.zip"
    path.write_bytes(content.getvalue())
    with pytest.raises(InputError, match=r"s\.zip:flags\.txt: --starvation-timeout"):
        read_sources([str(path)])
