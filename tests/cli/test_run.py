"""What `muster run` makes of its options."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

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


@pytest.mark.parametrize(
    ("arguments", "env", "cleanup"),
    [
        ([], None, True),
        (["--no-gcs-ft-redis-cleanup"], None, False),
        ([], "false", False),
        ([], "true", True),
        (["--gcs-ft-redis-cleanup"], "false", True),
    ],
)
def test_the_redis_of_a_deleted_cluster_is_cleared_out_unless_told_not_to(
    asked: list[Options], monkeypatch: pytest.MonkeyPatch, arguments: list[str], env: str | None, cleanup: bool
) -> None:
    if env is not None:
        monkeypatch.setenv("ENABLE_GCS_FT_REDIS_CLEANUP", env)
    assert run(*arguments) == (0, "")
    assert controller_options(asked[0], "muster:1").redis_cleanup is cleanup


@pytest.mark.parametrize(
    ("arguments", "gate", "scheduler", "gangs"),
    [
        ([], "muster.dev/gang", "muster", True),
        (["--scheduler-name", "ours"], "muster.dev/gang", "ours", True),
        (["--components", "controllers", "--batch-scheduler", "muster"], "muster.dev/gang", "muster", True),
        (["--components", "controllers", "--batch-scheduler", "volcano"], None, "volcano", True),
        (["--batch-scheduler", "volcano"], None, "volcano", True),
        (["--batch-scheduler", "none"], None, "none", False),
    ],
)
def test_pods_are_gated_where_a_scheduler_of_ours_takes_the_gate_away(
    asked: list[Options], arguments: list[str], gate: str | None, scheduler: str, gangs: bool
) -> None:
    assert run(*arguments) == (0, "")
    options = controller_options(asked[0], "muster:1")
    assert (options.gate, options.scheduler_name, options.gangs) == (gate, scheduler, gangs)


def test_volcanos_pods_are_not_ours_where_volcano_places_them(asked: list[Options]) -> None:
    assert run("--batch-scheduler", "volcano") == (0, "")
    assert asked[0].scheduler_names == ("muster",)
    status, complaint = run("--batch-scheduler", "volcano", "--scheduler-name", "volcano")
    assert status == 2
    assert "placed twice" in complaint
    assert run("--components", "controllers", "--batch-scheduler=volcano", "--scheduler-name", "volcano") == (0, "")


def test_a_batch_scheduler_that_is_not_there_is_bad_usage(asked: list[Options]) -> None:
    status, complaint = run("--batch-scheduler", "yunikorn")
    assert (status, asked) == (2, [])
    assert "yunikorn" in complaint


def test_controllers_alone_have_to_be_told_who_schedules(asked: list[Options]) -> None:
    status, complaint = run("--components", "controllers", "--scheduler-name", "volcano")
    assert status == 2
    assert "--batch-scheduler" in complaint
    assert asked == []
    assert run("--components", "scheduler") == (0, "")


def test_only_the_namespaces_that_are_named_are_reconciled(asked: list[Options]) -> None:
    assert run() == (0, "")
    assert run("--watch-namespace", "team-a", "--watch-namespace", "team-b") == (0, "")
    assert [controller_options(one, "muster:1").namespaces for one in asked] == [(), ("team-a", "team-b")]


@pytest.mark.parametrize("name", ["team-*", "a,b", "!a", "", "Team"])
def test_a_namespace_that_can_not_be_is_bad_usage(asked: list[Options], name: str) -> None:
    status, complaint = run("--watch-namespace", name)
    assert (status, asked) == (2, [])
    assert "can't name a namespace" in complaint


@pytest.mark.parametrize(
    ("option", "variable", "value", "field", "meant"),
    [
        ("--login-shell", "ENABLE_LOGIN_SHELL", "true", "pods.login_shell", True),
        ("--no-inject-probes", "ENABLE_PROBES_INJECTION", "False", "pods.inject_probes", False),
        ("--no-inject-init-container", "ENABLE_INIT_CONTAINER_INJECTION", "false", "pods.inject_init_container", False),
        ("--fixed-head-name", "ENABLE_DETERMINISTIC_HEAD_POD_NAME", "TRUE", "pods.fixed_head_name", True),
        ("--head-cluster-ip", "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE", "true", "pods.head_cluster_ip", True),
        ("--cluster-domain=example.org", "CLUSTER_DOMAIN", "example.org", "pods.cluster_domain", "example.org"),
        ("--random-pod-delete", "ENABLE_RANDOM_POD_DELETE", "true", "random_pod_delete", True),
        ("--status-check-timeout=7", "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "7", "status_check_timeout", 7.0),
        (
            "--submitter-grace=7",
            "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
            "7",
            "submitter_grace",
            7.0,
        ),
    ],
)
def test_the_switches_of_kuberay(
    asked: list[Options],
    monkeypatch: pytest.MonkeyPatch,
    option: str,
    variable: str,
    value: str,
    field: str,
    meant: object,
) -> None:
    assert run() == (0, "")
    assert run(option) == (0, "")
    monkeypatch.setenv(variable, value)
    assert run() == (0, "")
    default, by_option, by_variable = (attrgetter(field)(controller_options(one, "m")) for one in asked)
    assert default != meant
    assert by_option == by_variable == meant


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("ENABLE_PROBES_INJECTION", "perhaps", "ENABLE_PROBES_INJECTION"),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "soon", "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS"),
        ("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "-1", "--status-check-timeout"),
        ("CLUSTER_DOMAIN", "a_b", '"a_b" is no DNS domain'),
    ],
)
def test_a_variable_that_can_not_be_is_bad_usage(
    asked: list[Options], monkeypatch: pytest.MonkeyPatch, variable: str, value: str, named: str
) -> None:
    monkeypatch.setenv(variable, value)
    status, complaint = run()
    assert (status, asked) == (2, [])
    assert named in complaint


def test_the_configuration_file_is_read_once_and_its_faults_are_bad_usage(asked: list[Options], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("apiVersion: config.ray.io/v1alpha1\nkind: Configuration\ndefaultPodLabels: {team: ray}\n")
    assert run("--config", str(path)) == (0, "")
    assert controller_options(asked[0], "m").pods.every_pod.labels == (("team", "ray"),)
    path.write_text("kind: Configuration\n")
    status, complaint = run("--config", str(path))
    assert (status, len(asked)) == (2, 1)
    assert "apiVersion" in complaint
