"""Fixtures of the end-to-end tests: one cluster with Muster in it, and a namespace and an observer for each test.

With pytest-xdist the tests run side by side on that one cluster: the main process makes it and tells the others where
it is. A test marked `alone` waits until no other is running, and keeps the others waiting until it has ended.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Generator, Iterator
from dataclasses import asdict
from typing import Any

import pytest

from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError
from tests.cluster.progress import Steps
from tests.conftest import refuse
from tests.e2e import target as targets
from tests.e2e.api import Api, wait_until
from tests.e2e.install import InstallError, install
from tests.e2e.observer import Observer
from tests.e2e.target import Target
from tests.e2e.turns import turn

TARGET = "e2e_target"
"""The key under which the main process tells the others where the cluster is, or why there is none."""

FAILURES = (PrerequisiteError, CommandFailedError, InstallError, LookupError, TimeoutError)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cluster", choices=["kind", "current"], default="kind", help="where the node level runs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs alone comes last."""
    items.sort(key=is_alone)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Make the cluster of all test processes, before they start; it goes when they have ended."""
    held = contextlib.ExitStack()
    config.add_cleanup(held.close)
    reason = missing(config)
    if reason:
        config.stash[_told] = {"missing": reason}
        return
    capture = config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            config.stash[_told] = {key: str(value) for key, value in asdict(held.enter_context(ready(config))).items()}
    except FAILURES as error:
        pytest.exit(f"no cluster for the end-to-end tests: {error}", returncode=1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a test process of it."""
    node.workerinput[TARGET] = node.config.stash[_told]


_told = pytest.StashKey[dict[str, str]]()


def missing(config: pytest.Config) -> str | None:
    """Say what the node level lacks on this machine; None where nothing does, or where the cluster is given."""
    if config.getoption("--cluster") == "current":
        return None
    # Imported here: the node level is not needed where the cluster is given.
    from tests.cluster.node.requirements import missing_for_node_level

    lacking = missing_for_node_level()
    return f"no node level on this machine: {'; '.join(map(str, lacking))}" if lacking else None


@contextlib.contextmanager
def ready(config: pytest.Config) -> Iterator[Target]:
    """The cluster, with Muster installed."""
    given = config.getoption("--cluster") == "current"
    with contextlib.nullcontext(targets.current()) if given else targets.kind(Steps(), name="muster-e2e") as target:
        install(target)
        yield target


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The cluster, with Muster installed. What can't run here is skipped with its reason; in CI that is a failure."""
    told: dict[str, str] | None = getattr(request.config, "workerinput", {}).get(TARGET)
    reason = missing(request.config) if told is None else told.get("missing")
    if reason:
        refuse(reason)
    if told is not None:
        yield Target.of(told)
        return
    with ready(request.config) as made:
        yield made


def is_alone(item: pytest.Item) -> bool:
    """Whether a test needs the whole cluster, or the operator, for itself."""
    return item.get_closest_marker("alone") is not None


@pytest.fixture(autouse=True)
def its_turn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where tests run side by side, wait until this one may."""
    if not hasattr(request.config, "workerinput"):
        yield
        return
    with turn(tmp_path_factory.getbasetemp().parent / "turns", alone=is_alone(request.node)):
        yield


@pytest.fixture(scope="session")
def api(target: Target) -> Api:
    return Api(target.kubeconfig)


@pytest.fixture(scope="session")
def leaving(api: Api) -> Iterator[dict[str, str]]:
    """Namespaces that are being deleted, and the tests that they were for. All of them have to be gone in the end."""
    namespaces: dict[str, str] = {}
    yield namespaces
    for name, test in namespaces.items():
        wait_until(lambda name=name: api.get("Namespace", name) is None, f"{name} of {test} is gone", within=90)  # type: ignore[misc]


@pytest.fixture
def namespace(api: Api, leaving: dict[str, str], request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own. All that is in it goes after the test, while others run."""
    name = f"e2e-{secrets.token_hex(4)}"
    api.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    yield name
    api.delete("Namespace", name)
    leaving[name] = request.node.name


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
