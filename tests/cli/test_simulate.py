"""`muster simulate` as a user runs it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from muster.cli.simulate import simulate
from tests.simulator.manifests import gang, node, pod, pod_group, text


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(simulate)
    return app


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.yaml"
    file.write_bytes(text(node("n1"), gang("g", 2)))
    return file


def run(app: typer.Typer, *arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], input=stdin)


def test_as_many_cycles_as_asked_for_are_printed_as_json(app: typer.Typer, cluster: Path) -> None:
    result = run(app, cluster, "--cycles", "3", "-o", "json")
    assert result.exit_code == 0
    cycles = json.loads(result.stdout)["cycles"]
    assert [len(each["bindings"]) for each in cycles] == [2, 0, 0]
    assert [each["podGroups"]["default/g"]["phase"] for each in cycles] == ["Inqueue", "Running", "Running"]


def test_yaml_says_the_same_as_json(app: typer.Typer, cluster: Path) -> None:
    arguments = (cluster, "--now", "2026-01-01T00:00:00Z", "-o")
    assert yaml.safe_load(run(app, *arguments, "yaml").stdout) == json.loads(run(app, *arguments, "json").stdout)


def test_without_a_format_there_are_tables(app: typer.Typer, cluster: Path) -> None:
    result = run(app, cluster, "--cycles", "2", "--now", "2026-01-01T00:00:00Z", "--step", "60")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert {"cycle 1, 2026-01-01T00:00:00Z", "cycle 2, 2026-01-01T00:01:00Z", "default/g-w-0 n1"} <= set(lines)
    assert lines.count("default/g-w-0 n1") == 1
    assert lines.count("default cpu 2, pods 2 cpu 2 1.00 true") == 2


def test_stdin_is_read_as_a_file_called_dash(app: typer.Typer, cluster: Path) -> None:
    result = run(app, "-", "-o", "json", stdin=cluster.read_bytes())
    assert len(json.loads(result.stdout)["cycles"][0]["bindings"]) == 2


def test_the_number_of_objects_passed_over_goes_to_stderr(app: typer.Typer, cluster: Path) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    cluster.write_bytes(text(node("n1"), service))
    result = run(app, cluster, "-o", "json")
    assert result.stderr == "muster: passed over 1 objects of other kinds (Service 1)\n"
    assert json.loads(result.stdout)["cycles"]


def test_other_scheduler_names_can_be_ours(app: typer.Typer, cluster: Path) -> None:
    cluster.write_bytes(text(node("n1"), gang("g", 2, scheduler="gangs")))
    assert json.loads(run(app, cluster, "-o", "json").stdout)["cycles"][0]["bindings"] == []
    result = run(app, cluster, "-o", "json", "--scheduler-name", "muster", "--scheduler-name", "gangs")
    assert len(json.loads(result.stdout)["cycles"][0]["bindings"]) == 2


def test_a_snapshot_is_simulated_as_its_scheduler_was_started_unless_told_otherwise(
    app: typer.Typer, tmp_path: Path
) -> None:
    large, small = pod_group("large"), pod_group("small")
    large["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    small["metadata"]["creationTimestamp"] = "2026-01-01T00:59:00Z"
    runs = pod("runs", cpu=2, node="n1", scheduler="gangs")
    waiting = [pod("l", "large", 4, scheduler="gangs"), pod("s", "small", 1, scheduler="gangs")]
    file = tmp_path / "snapshot.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("flags.txt", "--scheduler-name=gangs\n--starvation-timeout=0\n")
        archive.writestr("cluster.yaml", text(node("n1"), large, small, runs, waiting))

    def bound(*arguments: str) -> int:
        result = run(app, file, "-o", "json", "--now", "2026-01-01T01:00:00Z", *arguments)
        assert result.exit_code == 0, result.stderr
        return len(json.loads(result.stdout)["cycles"][0]["bindings"])

    assert bound() == 1
    assert bound("--starvation-timeout", "600") == 0, "room is held for the large one"
    assert bound("--scheduler-name", "muster") == 0


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ("actions: [\n", ["not YAML"]),
        ("", ["the configuration is empty"]),
        ('actions: "enqueue, alocate"\ntiers: []\n', ["actions", "alocate"]),
        ("actions: allocate\ntiers: [{plugins: [{name: gangs}]}]\n", ["tiers[0].plugins[0].name", "gangs"]),
        (None, ["No such file"]),
    ],
)
def test_a_configuration_that_can_not_be_used_ends_with_status_2_and_its_name(
    app: typer.Typer, cluster: Path, tmp_path: Path, configuration: str | None, words: list[str]
) -> None:
    conf = tmp_path / "scheduler.yaml"
    if configuration is not None:
        conf.write_text(configuration)
    result = run(app, cluster, "--conf", conf)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert [word for word in ["scheduler.yaml", *words] if word not in result.stderr] == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--cylces", "3"],
        ["--cycles", "0"],
        ["--cycles", "many"],
        ["--now", "noon"],
        ["--step", "-1"],
        ["-o", "xml"],
        ["--grace", "-1"],
    ],
)
def test_bad_usage_ends_with_status_2(app: typer.Typer, cluster: Path, arguments: list[str]) -> None:
    files = [cluster] if arguments else []
    assert run(app, *files, *arguments).exit_code == 2


def test_bad_input_ends_with_status_2_and_one_line(app: typer.Typer, cluster: Path) -> None:
    cluster.write_text("kind: Pod\n")
    result = run(app, cluster)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"muster: {cluster}, document 1: apiVersion: is missing (Pod)\n"


def test_that_an_extender_is_not_asked_is_said(app: typer.Typer, cluster: Path, tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.yaml"
    conf.write_text(
        "actions: enqueue, allocate\n"
        "tiers:\n"
        "- plugins:\n"
        "  - name: extender\n"
        "    arguments: {extender.urlPrefix: 'http://127.0.0.1:1', extender.predicateVerb: predicate}\n"
    )
    result = run(app, cluster, "--conf", conf, "-o", "json")
    assert len(json.loads(result.stdout)["cycles"][0]["bindings"]) == 2
    assert result.stderr == (
        "muster: left out what plugin 'extender' would say: it is asked by the cluster's scheduler only, "
        "here it refuses nothing\n"
    )
