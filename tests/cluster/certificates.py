"""A throw-away certificate authority for one cluster. All keys are ECDSA P-256, which cost milliseconds."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=3650)
# Clocks of a machine may step back after a resume; a certificate must not be of the future then.
_BACKDATED = timedelta(hours=1)


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as PEM texts."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write NAME.crt and NAME.key (readable by the owner only) and return their paths."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        write_secret(key, self.key)
        return certificate, key


class CertificateAuthority:
    """Signs certificates that serve and identify alike: a name is the user, organizations are the user's groups."""

    def __init__(self, name: str = "cluster-ca") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name, ())
        authority = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(authority, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, PEM."""
        return _pem(self._certificate)

    def issue(self, name: str, *, groups: Iterable[str] = (), hosts: Iterable[str] = ()) -> KeyPair:
        """Sign a key pair for CN=`name`, O=`groups`, valid for the DNS names and IP addresses of `hosts`."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = _builder(_subject(name, groups), self._name, key.public_key()).add_extension(usage, critical=False)
        names = [_host(host) for host in hosts]
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return KeyPair(_pem(builder.sign(self._key, hashes.SHA256())), _private_pem(key))


def signing_key() -> tuple[bytes, bytes]:
    """Return a private and a public key, PEM, with which service-account tokens are signed and checked."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _private_pem(key), public


def write_secret(path: Path, content: bytes) -> Path:
    """Write a file that only its owner may read, and return its path."""
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFETIME)
    )


def _subject(name: str, groups: Iterable[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
