from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.node import runc_without_resource

HELD = ["CAP_CHOWN", "CAP_SYS_RESOURCE"]
PROCESS: dict[str, Any] = {
    "args": ["sleep"],
    "capabilities": {"bounding": HELD, "effective": HELD, "ambient": ["CAP_CHOWN"]},
    "oomScoreAdj": -999,
}


@pytest.fixture
def runc(tmp_path: Path) -> Path:
    """A stand-in for runc that writes down how it was called and ends with status 7."""
    program = tmp_path / "runc"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$0.called"\nexit 7\n')
    program.chmod(0o755)
    return program


def call(runc: Path, *arguments: str, cwd: Path | None = None) -> tuple[int, list[str]]:
    """Run the wrapper as the engine does; returns runc's status and the arguments that runc got."""
    script = str(runc_without_resource.__file__)
    ended = subprocess.run([sys.executable, "-I", "-S", script, str(runc), *arguments], cwd=cwd, check=False)
    return ended.returncode, Path(f"{runc}.called").read_text().splitlines()


def bundle(folder: Path, process: dict[str, Any] | None) -> Path:
    folder.mkdir(exist_ok=True)
    document = {"ociVersion": "1.0.2", **({"process": process} if process is not None else {})}
    (folder / "config.json").write_text(json.dumps(document))
    return folder


def process_of(folder: Path) -> dict[str, Any]:
    process: dict[str, Any] = json.loads((folder / "config.json").read_text())["process"]
    return process


@pytest.mark.parametrize(
    "arguments",
    [
        ["--root", "/r", "create", "--bundle", "{}", "id"],
        ["create", "--bundle={}", "--pid-file", "p", "id"],
        ["run", "-b", "{}", "id"],
    ],
)
def test_a_new_container_asks_for_nothing_that_the_kernel_refuses(
    runc: Path, tmp_path: Path, arguments: list[str]
) -> None:
    folder = bundle(tmp_path / "bundle", PROCESS)
    words = [word.format(folder) for word in arguments]
    assert call(runc, *words) == (7, words)
    process = process_of(folder)
    assert process["capabilities"] == {name: ["CAP_CHOWN"] for name in ("bounding", "effective", "ambient")}
    assert "oomScoreAdj" not in process
    assert process["args"] == ["sleep"]


def test_without_a_bundle_option_the_bundle_is_the_working_folder(runc: Path, tmp_path: Path) -> None:
    folder = bundle(tmp_path / "bundle", PROCESS)
    assert call(runc, "create", "id", cwd=folder) == (7, ["create", "id"])
    assert process_of(folder)["capabilities"]["bounding"] == ["CAP_CHOWN"]


def test_an_exec_is_amended_in_its_process_file(runc: Path, tmp_path: Path) -> None:
    file = tmp_path / "process.json"
    file.write_text(json.dumps(PROCESS))
    assert call(runc, "exec", "--process", str(file), "id")[0] == 7
    assert json.loads(file.read_text())["capabilities"]["effective"] == ["CAP_CHOWN"]


@pytest.mark.parametrize("score", [0, 500])
def test_a_score_that_anyone_may_set_stays(runc: Path, tmp_path: Path, score: int) -> None:
    folder = bundle(tmp_path / "bundle", {"args": ["sleep"], "oomScoreAdj": score})
    call(runc, "create", "--bundle", str(folder), "id")
    assert process_of(folder)["oomScoreAdj"] == score


@pytest.mark.parametrize("arguments", [["state", "id"], ["delete", "--force", "id"], ["exec", "id", "true"]])
def test_other_commands_pass_as_they_are(runc: Path, arguments: list[str]) -> None:
    assert call(runc, *arguments) == (7, arguments)


def test_a_container_without_a_process_is_left_alone(runc: Path, tmp_path: Path) -> None:
    folder = bundle(tmp_path / "bundle", None)
    assert call(runc, "create", "--bundle", str(folder), "id")[0] == 7
    assert json.loads((folder / "config.json").read_text()) == {"ociVersion": "1.0.2"}
