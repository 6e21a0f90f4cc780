"""The cleanup Job's program, in a real Ray, against a real Redis: Debian's, which is installed where it is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muster.ray.redis_cleanup import PROGRAM
from tests.cluster.ports import free_ports
from tests.cluster.prerequisites import missing_root
from tests.cluster.process import CommandFailedError, run
from tests.conftest import refuse
from tests.ray.local_ray import installed_python, running_head

pytestmark = [pytest.mark.ray, pytest.mark.host]

PASSWORD = "p*ss w0rd$"
_INSTALL = ("apt-get", "install", "--yes", "--no-remove", "--no-install-recommends", "redis-server")

Keys = Callable[[], list[str]]


def redis_server() -> str:
    found = shutil.which("redis-server")
    if found is None and (missing_root() is not None or shutil.which("apt-get") is None):
        refuse("redis-server is not there, and can't be installed")
    if found is None:
        # RUNLEVEL=1: the package does not start a server of its own.
        quiet = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        try:
            run(["apt-get", "--quiet", "update"])
            run(list(_INSTALL), environment=quiet, whole=True)
        except CommandFailedError as error:
            refuse(f"redis-server can't be installed: {error}")
    return found or str(shutil.which("redis-server"))


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[int]:
    """Give the port of an empty Redis that asks for a password."""
    (port,) = free_ports(1)
    (tmp_path / "redis.conf").write_text(
        f'bind 127.0.0.1\nport {port}\nsave ""\ndir {tmp_path}\nrequirepass "{PASSWORD}"\n'
    )
    server = subprocess.Popen([redis_server(), tmp_path / "redis.conf"], stdout=subprocess.DEVNULL)
    try:
        yield port
    finally:
        server.terminate()
        server.wait(30)


def ask(port: int, *command: str) -> str:
    own = {**os.environ, "REDISCLI_AUTH": PASSWORD}
    cli = ["redis-cli", "-p", str(port), *command]
    return subprocess.run(cli, env=own, capture_output=True, text=True, check=True, timeout=30).stdout


def test_the_state_of_one_cluster_goes_and_that_of_others_stays(redis: int) -> None:
    try:
        python = installed_python()
    except CommandFailedError as error:
        refuse(f"Ray cannot be installed here: {error}")
    ours = {
        "RAY_REDIS_ADDRESS": f"127.0.0.1:{redis}",
        "REDIS_PASSWORD": PASSWORD,
        "RAY_external_storage_namespace": "ours",
    }
    params = ["--redis-password", PASSWORD]
    with running_head(ours, params):
        deadline = time.monotonic() + 60
        while "ours" not in ask(redis, "KEYS", "*"):
            assert time.monotonic() < deadline, "the head keeps no state in the Redis"
            time.sleep(0.2)
    ask(redis, "HSET", "RAYtheirs@KV", "k", "v")
    for _ in range(2):  # a second time is harmless, and says so or not
        subprocess.run(
            ["/bin/bash", "-c", "--", 'exec python -c "$0"', PROGRAM],
            env={**os.environ, **ours, "PATH": f"{python.parent}:{os.environ['PATH']}"},
            check=True,
            timeout=120,
        )
        left = ask(redis, "KEYS", "*").split()
        assert not [key for key in left if "ours" in key]
        assert "RAYtheirs@KV" in left


def test_a_redis_that_is_not_there_is_a_failure(redis: int) -> None:
    env = {
        **os.environ,
        "PATH": f"{installed_python().parent}:{os.environ['PATH']}",
        "RAY_REDIS_ADDRESS": f"127.0.0.1:{redis}",
        "REDIS_PASSWORD": "wrong",
        "RAY_external_storage_namespace": "ours",
        "RAY_redis_db_connect_retries": "2",
        "RAY_redis_db_connect_wait_milliseconds": "100",
    }
    command = ["/bin/bash", "-c", "--", 'exec python -c "$0"', PROGRAM]
    assert subprocess.run(command, env=env, check=False, timeout=120).returncode != 0
