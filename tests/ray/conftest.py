"""A real Ray for the tests of this folder that ask for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.cluster.process import CommandFailedError
from tests.conftest import refuse
from tests.ray.cutting_proxy import CuttingProxy
from tests.ray.local_ray import RayHead, installed_python, running_head


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a real Ray."""
    for item in items:
        if "ray_head" in getattr(item, "fixturenames", ()):
            item.add_marker("ray")


@pytest.fixture(scope="session")
def ray_head() -> Iterator[RayHead]:
    """Give a real Ray head, shared by all tests; each uses submission ids of its own."""
    try:
        installed_python()
    except CommandFailedError as error:
        refuse(f"Ray cannot be installed here: {error}")
    with running_head() as head:
        yield head


@pytest.fixture
async def proxy(ray_head: RayHead) -> AsyncIterator[CuttingProxy]:
    """Give a proxy in front of the dashboard whose connections can be cut."""
    async with CuttingProxy(ray_head.port) as cutting:
        yield cutting
