from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.cluster.node import requirements


@contextmanager
def registry(status: int) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v2/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "answers"), [(200, True), (401, True), (403, False), (502, False)])
def test_a_registry_is_there_when_it_answers_or_asks_who_we_are(status: int, answers: bool) -> None:
    with registry(status) as url:
        assert requirements.registry_answers(url) is answers


def test_a_registry_that_nobody_serves_is_not_there() -> None:
    with registry(200) as url:
        pass
    assert requirements.registry_answers(url) is False


@pytest.mark.parametrize(("chosen", "public"), [("public", True), ("built", False)])
def test_the_environment_may_choose_the_way(monkeypatch: pytest.MonkeyPatch, chosen: str, public: bool) -> None:
    monkeypatch.setenv(requirements.CHOICE, chosen)
    assert requirements.images_are_public() is public


def test_a_choice_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(requirements.CHOICE, "pubic")
    with pytest.raises(ValueError, match="pubic"):
        requirements.images_are_public()


def test_making_our_own_images_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(requirements.CHOICE, "built")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "root" in [missing.what for missing in requirements.missing_for_node_level()]


def path_with(folder: Path, *programs: str) -> str:
    for name in programs:
        (folder / name).touch(mode=0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("present", "packages"),
    [
        (["dockerd", "docker", "containerd", "ctr", "runc", "iptables", "debootstrap"], None),
        (["docker", "iptables", "debootstrap"], "docker.io containerd runc"),
        (["dockerd", "docker", "containerd", "ctr", "runc", "iptables"], "debootstrap"),
    ],
)
def test_only_packages_of_missing_programs_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, present: list[str], packages: str | None
) -> None:
    monkeypatch.setattr(requirements, "_SYSTEM_PATH", "")
    monkeypatch.setenv("PATH", path_with(tmp_path, *present))
    missing = requirements.missing_packages()
    assert (missing and missing.fix) == (
        packages and f"apt-get install --yes --no-remove --no-install-recommends {packages}"
    )
