"""The pair as files, which is how the webhook's server takes it: replaced together, never one without the other."""

from __future__ import annotations

from pathlib import Path

from muster.admission.certificates import ServingPair

CERTIFICATE = "tls.crt"
KEY = "tls.key"


class CertificateFiles:
    """Writes pairs into `folder`, which is ours alone; `current` in it is a link to the pair that counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._current = folder / "current"
        self._written: ServingPair | None = None
        self._generation = 0

    @property
    def certificate(self) -> Path:
        """Where the certificate is."""
        return self._current / CERTIFICATE

    @property
    def key(self) -> Path:
        """Where its key is."""
        return self._current / KEY

    def write(self, pair: ServingPair) -> None:
        """Make the pair the current one. Raises OSError, and the one before stays."""
        if pair == self._written:
            return
        self._generation += 1
        place = self._folder / f"pair-{self._generation}"
        place.mkdir(mode=0o700, exist_ok=True)
        (place / CERTIFICATE).write_bytes(pair.certificate)
        key = place / KEY
        key.touch(mode=0o600)
        key.write_bytes(pair.key)
        link = self._folder / "next"
        link.unlink(missing_ok=True)
        link.symlink_to(place.name)
        link.replace(self._current)
        self._written = pair
