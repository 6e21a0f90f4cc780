"""Connections from kubeconfigs and from a pod's service account, with tokens that rotate."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import json
import stat
import sys
import time
from pathlib import Path
from typing import Any

import kubernetes.config.incluster_config as incluster
import pytest
import yaml

from muster.kube.config import Connection, ConnectionConfigError, load_connection
from muster.kube.errors import Unreachable


def kubeconfig(path: Path, user: dict[str, Any], **cluster: Any) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": "https://api.example:6443/", **cluster}},
            {"name": "d", "cluster": {"server": "http://plain.example"}},
        ],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "first", "context": {"cluster": "c", "user": "u"}},
            {"name": "second", "context": {"cluster": "d", "user": "u"}},
        ],
        "current-context": "first",
    }
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither this machine's kubeconfig nor its proxies."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


async def test_a_kubeconfig_names_server_and_token(tmp_path: Path) -> None:
    connection = load_connection(kubeconfig(tmp_path / "config", {"token": "secret"}))
    assert connection.server == "https://api.example:6443"
    assert connection.ssl is not None
    assert await connection.authorization() == "Bearer secret"


async def test_another_context_can_be_chosen(tmp_path: Path) -> None:
    connection = load_connection(kubeconfig(tmp_path / "config", {}), "second")
    assert (connection.server, connection.ssl) == ("http://plain.example", None)
    assert await connection.authorization() is None


def test_the_environment_names_the_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "elsewhere", {"token": "t"})))
    assert load_connection().server == "https://api.example:6443"


def test_the_server_name_and_the_proxy_of_a_kubeconfig_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kubeconfig(tmp_path / "config", {}, **{"tls-server-name": "other", "proxy-url": "http://proxy:1"})
    connection = load_connection(path)
    assert (connection.server_name, connection.proxy) == ("other", "http://proxy:1")
    monkeypatch.setenv("NO_PROXY", "api.example")
    assert load_connection(path).proxy is None


@pytest.mark.parametrize(
    ("kubeconfig_path", "context"), [(Path("no-such-file"), None), (None, None), (None, "no-such-context")]
)
def test_where_nothing_names_a_server_the_reason_is_told(kubeconfig_path: Path | None, context: str | None) -> None:
    with pytest.raises(ConnectionConfigError) as refused:
        load_connection(kubeconfig_path, context)
    assert str(refused.value)


def test_an_unknown_context_and_a_broken_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="third"):
        load_connection(kubeconfig(tmp_path / "config", {}), "third")
    certificate = kubeconfig(tmp_path / "bad", {}, **{"certificate-authority-data": "bm90IGEgY2VydGlmaWNhdGU="})
    with pytest.raises(ConnectionConfigError):
        load_connection(certificate)


async def test_an_exec_plugin_is_run_again_before_its_token_expires(tmp_path: Path) -> None:
    counter, plugin = tmp_path / "count", tmp_path / "plugin"
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=30)
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"expirationTimestamp": soon.strftime("%Y-%m-%dT%H:%M:%SZ"), "token": "N"},
    }
    plugin.write_text(
        f"#!{sys.executable}\nimport pathlib\np = pathlib.Path({str(counter)!r})\n"
        "n = int(p.read_text()) + 1 if p.exists() else 1\np.write_text(str(n))\n"
        f"print({json.dumps(credential)!r}.replace('\"N\"', f'\"token-{{n}}\"'))\n"
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    now = [0.0]
    connection = load_connection(kubeconfig(tmp_path / "config", user))
    connection.clock = lambda: now[0]
    first = await connection.authorization()
    assert await connection.authorization() == first
    now[0] += 60
    assert await connection.authorization() != first


async def test_a_pods_token_is_read_again_when_it_was_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("old\n")
    authority.write_text("unused: plain text is refused only when it is loaded")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(incluster, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setattr("muster.kube.config._tls", lambda configuration: None)
    now = [0.0]
    connection = load_connection()
    connection.clock = lambda: now[0]
    assert connection.server == "https://[fd00::1]:443"
    assert await connection.authorization() == "bearer old"

    token.write_text("new\n")
    real = datetime.datetime

    class Later(real):  # type: ignore[valid-type,misc]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return real.now(tz) + datetime.timedelta(minutes=2)

    monkeypatch.setattr(datetime, "datetime", Later)
    now[0] += 120
    assert await connection.authorization() == "bearer new"


async def test_credentials_that_cannot_be_read_fail_the_request_and_not_the_process() -> None:
    class Broken:
        def authorization(self) -> str | None:
            raise OSError("no such file")

    with pytest.raises(Unreachable, match="no such file"):
        await Connection("http://x", credentials=Broken()).authorization()


def test_a_copy_of_a_connection_serves_another_event_loop() -> None:
    class Slow:
        def authorization(self) -> str:
            time.sleep(0.01)
            return "Bearer t"

    async def several_at_once(connection: Connection) -> set[str | None]:
        return set(await asyncio.gather(*(connection.authorization() for _ in range(3))))

    first = Connection("https://api.example", credentials=Slow())
    assert asyncio.run(several_at_once(first)) == {"Bearer t"}
    copy = dataclasses.replace(first, clock=lambda: time.monotonic() + 60)
    assert asyncio.run(several_at_once(copy)) == {"Bearer t"}
