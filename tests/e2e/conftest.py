"""Fixtures of the end-to-end tests: one cluster with Muster in it, and a namespace and an observer for each test."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Iterator

import pytest

from tests.cluster.progress import Steps
from tests.e2e import target as targets
from tests.e2e.api import Api, wait_until
from tests.e2e.install import install
from tests.e2e.observer import Observer
from tests.e2e.target import Target

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", choices=["kind", "current"], default="kind", help="where the node level runs")


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The cluster, with Muster installed. What can't run here is skipped with its reason; in CI that is a failure."""
    if request.config.getoption("--cluster") == "current":
        given = targets.current()
        install(given)
        yield given
        return
    from tests.cluster.node.requirements import missing_for_node_level

    missing = missing_for_node_level()
    if missing:
        reason = f"no node level on this machine: {'; '.join(map(str, missing))}"
        if IN_CI:
            pytest.fail(reason)
        pytest.skip(reason)
    with targets.kind(Steps(), name="muster-e2e") as made:
        install(made)
        yield made


@pytest.fixture(scope="session")
def api(target: Target) -> Api:
    return Api(target.kubeconfig)


@pytest.fixture
def namespace(api: Api, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, gone with all that is in it afterwards."""
    name = f"e2e-{secrets.token_hex(4)}"
    api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    yield name
    api.delete("Namespace", name)
    wait_until(lambda: api.get("Namespace", name) is None, f"namespace {name} is gone", within=90)


@pytest.fixture
def observer(api: Api, namespace: str) -> Iterator[Observer]:
    with Observer(api, namespace) as watching:
        yield watching


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds what the operator said to the report of a test that failed."""
    report = yield
    if report.when == "call" and report.failed and "api" in getattr(item, "funcargs", {}):
        report.sections.append(("operator log", operator_log(item.funcargs["api"])))  # type: ignore[attr-defined]
    return report


def operator_log(api: Api) -> str:
    """The last lines of the operator's log."""
    pods = api.list("Pod", "muster-system", "app.kubernetes.io/name=muster")
    return "\n".join(tail(api.logs(pod["metadata"]["name"], "muster-system"), 80) for pod in pods)


def tail(text: str, lines: int) -> str:
    return "\n".join(text.splitlines()[-lines:])
