from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from tests.cluster.certificates import CertificateAuthority, signing_key, write_secret
from tests.cluster.kubeconfig import write_kubeconfig
from tests.cluster.ports import free_ports


def shake_hands(folder: Path, server_name: str) -> dict[str, Any]:
    """Let a server for `localhost` meet a client `someone`; return the certificate that the server saw."""
    authority = CertificateAuthority()
    (folder / "ca.crt").write_bytes(authority.certificate)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.crt"))
    server.load_cert_chain(*authority.issue("server", hosts=["localhost", "127.0.0.1"]).write(folder, "server"))
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    client.load_cert_chain(*authority.issue("someone", groups=["a", "b"]).write(folder, "client"))
    seen: dict[str, Any] = {}
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with theirs, server.wrap_socket(theirs, server_side=True) as connection:
            seen.update(connection.getpeercert() or {})
            connection.sendall(b"ok")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with ours, client.wrap_socket(ours, server_hostname=server_name) as connection:
            assert connection.recv(2) == b"ok"
    finally:
        thread.join(10)
    return seen


@pytest.mark.parametrize("server_name", ["localhost", "127.0.0.1"])
def test_the_user_is_the_common_name_and_the_groups_are_the_organizations(tmp_path: Path, server_name: str) -> None:
    subject = [pair for part in shake_hands(tmp_path, server_name)["subject"] for pair in part]
    assert [value for name, value in subject if name == "organizationName"] == ["a", "b"]
    assert [value for name, value in subject if name == "commonName"] == ["someone"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_server_of_another_name_is_not_trusted(tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(tmp_path, "elsewhere")


def test_two_authorities_do_not_share_a_key() -> None:
    first, second = (x509.load_pem_x509_certificate(CertificateAuthority().certificate) for _ in range(2))
    assert first.public_key() != second.public_key()


def test_signing_keys_are_a_pair() -> None:
    private, public = signing_key()
    assert b"PRIVATE KEY" in private
    assert b"PUBLIC KEY" in public


def test_secrets_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    assert write_secret(tmp_path / "key", b"secret").stat().st_mode & 0o777 == 0o600


def test_a_kubeconfig_needs_no_other_file(tmp_path: Path) -> None:
    authority = CertificateAuthority()
    identity = authority.issue("me")
    path = write_kubeconfig(
        tmp_path / "k", server="https://x:1", authority=authority.certificate, user="me", identity=identity
    )
    document = yaml.safe_load(path.read_text())
    assert document["current-context"] == "me@muster"
    assert set(document["clusters"][0]["cluster"]) == {"server", "certificate-authority-data"}
    assert set(document["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_ports_are_free_different_and_outside_the_ranges_of_others() -> None:
    with socket.socket() as taken:
        ports = free_ports(50)
        assert len(set(ports)) == 50
        assert all(20000 <= port < 30000 for port in ports)
        taken.bind(("127.0.0.1", ports[0]))
        taken.listen()
        assert ports[0] not in free_ports(9000)
