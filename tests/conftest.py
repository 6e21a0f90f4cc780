"""What all tests share: the control plane, and what happens where it cannot run.

A test that uses the fixture `control_plane` (or carries the mark) is skipped, with the reason, on a machine that
cannot build the programs; with CI=true in the environment it fails instead, so that no test is lost in silence.
"""

from __future__ import annotations

import contextlib
import os
import signal
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.cluster.binaries import CONTROL_PLANE
from tests.cluster.control_plane import ControlPlane, build
from tests.cluster.control_plane_commands import Options
from tests.cluster.gobuild import is_built
from tests.cluster.prerequisites import PrerequisiteError, missing_go
from tests.cluster.termination import end_as_if_interrupted

# A busy machine is no fault of the code: however long an example takes, or is in the making, the property holds.
# The same examples are tried each time, so that a change is judged by what it changes; EXPLORE=1 looks for new ones.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not os.environ.get("EXPLORE"),
)
settings.load_profile("patient")

_FIXTURES = {"control_plane", "full_control_plane", "scheduling_control_plane"}


def pytest_configure() -> None:
    """Let an interrupt interrupt. A shell's script starts its background commands, and all that they start, deaf to it;
    a test that interrupts a program would wait for its end for ever. A run that is terminated ends as an interrupted
    one: the clusters of its tests go with it.
    """
    end_as_if_interrupted()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadgroup` keep in one process what shares something that takes long to start."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from tests.one_process import SharedTogether

    return SharedTogether(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a control plane, so that `-m "not control_plane"` leaves it out.

    What takes longest comes first, so that no process is left with it in the end.
    """
    for item in items:
        if _FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("control_plane")
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test whose control plane cannot be built here."""
    if item.get_closest_marker("control_plane") is None or is_built(CONTROL_PLANE):
        return
    missing = missing_go()
    if missing is not None:
        refuse(f"the control plane needs {missing}")


def refuse(reason: str) -> None:
    """Skip the running test for a reason of the machine; fail it where CI=true promises that nothing is missing."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Give etcd and kube-apiserver with the repository's CRDs, one per test process.

    Tests share it: they use namespaces of their own, and own names for what has no namespace. There is no controller
    manager: no Jobs run, nothing is collected, a deleted namespace stays Terminating.
    """
    _build(request, Options())
    with ControlPlane.start() as plane:
        yield plane


@pytest.fixture(scope="session")
def full_control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Give a second one with the controller manager and kwok, whose nodes (`add_node`) run pods at once."""
    _build(request, Options(controller_manager=True, kwok=True))
    with ControlPlane.start(controller_manager=True, kwok=True) as plane:
        yield plane


@pytest.fixture(scope="session")
def scheduling_control_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """Give one with kube-scheduler and the controllers; nodes stay ready though nobody plays their kubelets."""
    _build(request, Options(controller_manager=True, scheduler=True))
    controllers = "*,-node-lifecycle-controller"
    with ControlPlane.start(controller_manager=True, controllers=controllers, scheduler=True) as plane:
        yield plane


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """Give a fresh namespace of the control plane; it goes with the control plane."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    control_plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


def _build(request: pytest.FixtureRequest, options: Options) -> None:
    """Build what is missing; the progress of a first build, which takes minutes, goes through pytest's capture."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            build(options)
    except PrerequisiteError as error:
        refuse(f"the control plane needs {error}")
