"""With what a kubeconfig has a request signed, or a connection opened."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from muster.kube.client import ApiClient
from muster.kube.config import Connection, ConnectionConfigError, load_connection
from muster.kube.errors import Unreachable
from muster.kube.resource import PODS
from tests.cluster.certificates import CertificateAuthority, KeyPair
from tests.kube.test_config import kubeconfig

CREDENTIAL = "client.authentication.k8s.io/v1"
EMPTY = b'{"metadata": {"resourceVersion": "1"}, "items": []}'


def plugin(folder: Path, program: str) -> Path:
    """A program that ends by printing what it has in `status`."""
    path = folder / "plugin"
    shown = f"print(json.dumps({{'apiVersion': {CREDENTIAL!r}, 'kind': 'ExecCredential', 'status': status}}))"
    path.write_text(f"#!{sys.executable} -S\nimport json, os, sys\n{program}\n{shown}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def run_by(folder: Path, program: str, **more: Any) -> dict[str, Any]:
    return {"exec": {"apiVersion": CREDENTIAL, "command": str(plugin(folder, program)), **more}}


async def authorization(folder: Path, user: dict[str, Any], **cluster: Any) -> str | None:
    return await load_connection(kubeconfig(folder / "config", user, **cluster)).authorization()


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "u", "password": "p"}, "Basic " + base64.b64encode(b"u:p").decode()),
        ({"tokenFile": "token"}, "Bearer of the file"),
        ({"token": "abc", "tokenFile": "token"}, "Bearer of the file"),
        ({"token": "", "exec": None, "auth-provider": None}, None),
        ({}, None),
    ],
)
async def test_what_stands_in_the_file(tmp_path: Path, user: dict[str, Any], header: str | None) -> None:
    (tmp_path / "token").write_text("of the file\n")
    assert await authorization(tmp_path, user) == header


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    now, token = [0.0], tmp_path / "token"
    token.write_text("old")
    connection = load_connection(kubeconfig(tmp_path / "config", {"tokenFile": str(token)}))
    connection.clock = lambda: now[0]
    assert await connection.authorization() == "Bearer old"
    token.write_text("new")
    now[0] += 60
    assert await connection.authorization() == "Bearer new"


@pytest.mark.parametrize("content", [None, ""])
async def test_a_token_file_without_a_token_fails_the_request(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)
    with pytest.raises(Unreachable, match="token"):
        await authorization(tmp_path, {"tokenFile": "token"})


async def test_a_plugin_gets_its_arguments_and_variables(tmp_path: Path) -> None:
    user = run_by(
        tmp_path,
        "status = {'token': ' '.join([*sys.argv[1:], os.environ['ROLE']])}",
        args=["get", "token"],
        env=[{"name": "ROLE", "value": "admin"}],
    )
    assert await authorization(tmp_path, user) == "Bearer get token admin"


async def test_a_plugin_is_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    plugin(tmp_path, "status = {'token': 't'}")
    assert await authorization(tmp_path, {"exec": {"apiVersion": CREDENTIAL, "command": "./plugin"}}) == "Bearer t"


async def test_a_plugin_is_told_of_the_cluster_where_it_asks(tmp_path: Path) -> None:
    say = "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\nstatus = {'token': json.dumps(info['spec'])}"
    authority = CertificateAuthority().certificate
    (tmp_path / "ca.crt").write_bytes(authority)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster: dict[str, Any] = {"certificate-authority": "ca.crt", "extensions": [extension]}
    header = await authorization(tmp_path, run_by(tmp_path, say, provideClusterInfo=True), **cluster)
    told = json.loads((header or "").removeprefix("Bearer "))
    assert told == {
        "interactive": False,
        "cluster": {
            "server": "https://api.example:6443/",
            "certificate-authority-data": base64.b64encode(authority).decode(),
            "config": {"audience": "a"},
        },
    }
    silent = await authorization(tmp_path, run_by(tmp_path, say), **cluster)
    assert json.loads((silent or "").removeprefix("Bearer ")) == {"interactive": False}


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("sys.exit('log in first')", "log in first"),
        ("status = {}", "neither a token nor a certificate"),
        ("print('hello')\nstatus = {}", "can't be read"),
        ("status = {'token': 't', 'expirationTimestamp': 'soon'}", "soon"),
        ("status = {'clientCertificateData': 'c'}", "no key"),
    ],
)
async def test_what_is_wrong_with_a_plugin_is_told(tmp_path: Path, program: str, words: str) -> None:
    with pytest.raises(Unreachable, match=words):
        await authorization(tmp_path, run_by(tmp_path, program))


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"exec": {"apiVersion": CREDENTIAL}}, "command"),
        ({"exec": {"apiVersion": CREDENTIAL, "command": "no-such-plugin", "installHint": "Get it."}}, "Get it."),
        ({"exec": {"apiVersion": CREDENTIAL, "command": "x", "interactiveMode": "Always"}}, "terminal"),
    ],
)
async def test_a_plugin_that_can_not_be_run_is_told(tmp_path: Path, user: dict[str, Any], words: str) -> None:
    with pytest.raises((ConnectionConfigError, Unreachable), match=words):
        await authorization(tmp_path, user)


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture(scope="module")
def identity(authority: CertificateAuthority) -> KeyPair:
    return authority.issue("somebody")


@pytest.mark.parametrize("given", ["files", "data", "both", "plugin"])
async def test_a_client_certificate_opens_the_connection(
    tmp_path: Path, authority: CertificateAuthority, identity: KeyPair, given: str
) -> None:
    certificate, key = identity.write(tmp_path, "client")
    in_words = {"clientCertificateData": identity.certificate.decode(), "clientKeyData": identity.key.decode()}
    user = {
        "files": {"client-certificate": certificate.name, "client-key": str(key)},
        "data": {
            "client-certificate-data": base64_of(identity.certificate),
            "client-key-data": base64_of(identity.key),
        },
        "both": {"client-certificate-data": base64_of(identity.certificate), "client-key": str(key)},
        "plugin": run_by(tmp_path, f"status = {in_words!r}"),
    }[given]
    path = kubeconfig(tmp_path / "config", user, **{"certificate-authority-data": base64_of(authority.certificate)})
    connection = load_connection(path)
    assert await pods(connection, authority, tmp_path) == []


async def test_without_the_certificate_the_server_lets_nobody_in(
    tmp_path: Path, authority: CertificateAuthority
) -> None:
    path = kubeconfig(tmp_path / "config", {}, **{"certificate-authority-data": base64_of(authority.certificate)})
    with pytest.raises(Unreachable):
        await pods(load_connection(path), authority, tmp_path)


@pytest.mark.parametrize("cluster", [{}, {"insecure-skip-tls-verify": True}])
async def test_whom_nobody_vouches_for_is_believed_only_on_demand(
    tmp_path: Path, authority: CertificateAuthority, identity: KeyPair, cluster: dict[str, Any]
) -> None:
    certificate, key = identity.write(tmp_path, "client")
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    connection = load_connection(kubeconfig(tmp_path / "config", user, **cluster))
    if cluster:
        assert await pods(connection, authority, tmp_path) == []
    else:
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await pods(connection, authority, tmp_path)


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def pods(connection: Connection, authority: CertificateAuthority, folder: Path) -> list[dict[str, Any]]:
    """What a server says that lets in only whom the authority knows."""
    own = authority.issue("api", hosts=["127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.certificate.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(*own.write(folder, "server"))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(EMPTY), EMPTY))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        connection.server = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with ApiClient(connection) as client:
            return await client.list(PODS, "default")
