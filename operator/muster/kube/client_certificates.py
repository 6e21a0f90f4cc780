"""Client certificates into a TLS context, from files or, as kubeconfigs and plugins may have them, from text.

Python's `ssl` reads them from files only: what is text stands in one for a moment, which nobody else may read.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from pathlib import Path

from muster.kube.kubeconfig import Access


def load_identity(context: ssl.SSLContext, access: Access) -> None:
    """What a kubeconfig's user has of a certificate and its key. Raises OSError, ValueError."""
    user, folder = access.user, access.user_folder
    certificate = content_or_path(user.client_certificate_data, user.client_certificate, folder)
    if certificate is None:
        return
    key = content_or_path(user.client_key_data, user.client_key, folder)
    if isinstance(certificate, Path) and not isinstance(key, bytes):
        context.load_cert_chain(certificate, key)
    else:
        load_pem(context, *(_bytes(each) for each in (certificate, key) if each is not None))


def load_pem(context: ssl.SSLContext, *parts: bytes) -> None:
    """A certificate and its key, PEM."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\n".join(parts))
        file.flush()
        context.load_cert_chain(file.name)


def content_or_path(data: str | None, name: str | None, folder: Path) -> bytes | Path | None:
    """What the data holds (base64), else where the file is."""
    if data:
        return base64.b64decode(data, validate=False)
    return folder / Path(name) if name else None


def _bytes(given: bytes | Path) -> bytes:
    return given.read_bytes() if isinstance(given, Path) else given
