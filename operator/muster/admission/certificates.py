"""Key pairs for the webhook's server.

Each is signed by an authority of its own, whose key is thrown away at once: nobody can sign another with it. What the
API server is given to trust (the bundle) holds the authorities of the present pair and of the one before it, so that a
server that has not taken up the new pair yet is believed too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME: Final = timedelta(days=365)
RENEWAL: Final = timedelta(days=120)
"""A pair is replaced when it has less than this left: a third of a year is time to notice that it fails."""
_BACKDATED: Final = timedelta(hours=1)
"""Clocks differ; a certificate must not be of the future anywhere."""


@dataclass(frozen=True, slots=True)
class ServingPair:
    """PEM texts: the server's certificate and key, and the bundle of authorities to be trusted."""

    certificate: bytes
    key: bytes
    bundle: bytes

    def serves(self, hosts: Sequence[str], now: datetime) -> bool:
        """Whether it can be read, is for exactly these hosts, belongs together, and lasts for a while yet."""
        try:
            certificate = x509.load_pem_x509_certificate(self.certificate)
            key = serialization.load_pem_private_key(self.key, password=None)
            authorities = x509.load_pem_x509_certificates(self.bundle)
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, TypeError, x509.ExtensionNotFound):
            return False
        return (
            certificate.public_key() == key.public_key()
            and any(authority.subject == certificate.issuer for authority in authorities)
            and set(names) == {_general_name(host) for host in hosts}
            and certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - RENEWAL
        )


def new_pair(hosts: Sequence[str], now: datetime, before: bytes = b"") -> ServingPair:
    """A pair for these DNS names and IP addresses. `before` is the bundle so far: its newest authority stays in.

    A bundle that can't be read counts as empty.
    """
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    # A name of its own for each authority, so that two in a bundle can be told apart.
    issuer = _name(f"muster-admission-{x509.random_serial_number():x}"[:64])
    authority = (
        _builder(issuer, issuer, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    certificate = (
        _builder(_name(hosts[0][:64]), issuer, key.public_key(), now)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(server, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    return ServingPair(
        certificate.public_bytes(encoding),
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        authority.public_bytes(encoding) + _newest(before),
    )


def _newest(bundle: bytes) -> bytes:
    try:
        authorities = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return b""
    newest = max(authorities, key=lambda authority: authority.not_valid_before_utc)
    return newest.public_bytes(serialization.Encoding.PEM)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    start = now.astimezone(UTC) - _BACKDATED
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + LIFETIME)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
