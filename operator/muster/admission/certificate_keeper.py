"""Keeps the webhook's certificate: made once for all processes, renewed in time, known to the API server.

It lives in a Secret of Muster's namespace. Whoever finds it missing, damaged or near its end writes a new one over the
version that was read; of several processes one wins, and the others take what it wrote. The order is: the Secret, then
the bundle in the webhook's configuration, then the files that the server reads. So whatever a server shows was trusted
before, also when a process dies in between; and each look mends what the last one left undone.

Where the cluster has no configuration of the webhook, nothing is done: admission is not installed.
"""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from muster.admission.certificate_files import CERTIFICATE, KEY, CertificateFiles
from muster.admission.certificates import ServingPair, new_pair
from muster.controllers.clock import Clock
from muster.kube.client import ApiClient, PatchKind
from muster.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from muster.kube.resource import SECRETS, VALIDATINGWEBHOOKCONFIGURATIONS

logger = logging.getLogger(__name__)

CONFIGURATION: Final = "muster"
"""The name of the webhook's configuration, as in manifests/base."""
SECRET: Final = "muster-admission-certificate"  # noqa: S105 - the name of one
_BUNDLE: Final = "ca.crt"
_EVERY: Final = 60.0
"""Seconds between two looks."""
_AFTER_FAILURE: Final = 5.0


@dataclass(frozen=True, slots=True)
class CertificateKeeper:
    """`namespace` is Muster's own; `hosts` are the names by which the API server calls the webhook."""

    client: ApiClient
    clock: Clock
    namespace: str
    hosts: Sequence[str]
    files: CertificateFiles

    async def until_usable(self) -> None:
        """Return when the files are there."""
        while not await self._look_safely():
            await self.clock.sleep(_AFTER_FAILURE)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.clock.sleep(_EVERY if await self._look_safely() else _AFTER_FAILURE)

    async def _look_safely(self) -> bool:
        try:
            return await self.look()
        except (ApiError, OSError) as error:
            logger.warning("the webhook's certificate can't be looked after now: %s", error)
            return False

    async def look(self) -> bool:
        """Mend what is not as it should be; whether the files are there now. Raises ApiError and OSError."""
        try:
            configuration = await self.client.get(VALIDATINGWEBHOOKCONFIGURATIONS, None, CONFIGURATION)
        except NotFound:
            return False
        try:
            pair = await self._pair()
            await self._trust(configuration, pair.bundle)
        except (AlreadyExists, Conflict):  # another process was first; what it wrote is seen at the next look
            return False
        self.files.write(pair)
        return True

    async def _pair(self) -> ServingPair:
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        try:
            secret = await self.client.get(SECRETS, self.namespace, SECRET)
        except NotFound:
            pair = new_pair(self.hosts, now)
            await self.client.create(SECRETS, self.namespace, self._secret(pair))
            logger.info("made a certificate for the webhook")
            return pair
        stored = _read(secret)
        if stored.serves(self.hosts, now):
            return stored
        pair = new_pair(self.hosts, now, before=stored.bundle)
        # With the version that was read: of two processes that renew it at once, one is refused.
        body = self._secret(pair, secret["metadata"]["resourceVersion"])
        await self.client.replace(SECRETS, self.namespace, SECRET, body)
        logger.info("renewed the certificate of the webhook")
        return pair

    def _secret(self, pair: ServingPair, resource_version: str | None = None) -> dict[str, Any]:
        metadata = {
            "name": SECRET,
            "namespace": self.namespace,
            "labels": {"app.kubernetes.io/name": "muster"},
        }
        if resource_version is not None:
            metadata["resourceVersion"] = resource_version
        data = {CERTIFICATE: pair.certificate, KEY: pair.key, _BUNDLE: pair.bundle}
        return {
            "apiVersion": SECRETS.api_version,
            "kind": SECRETS.kind,
            "type": "kubernetes.io/tls",
            "metadata": metadata,
            "data": {key: b64encode(value).decode() for key, value in data.items()},
        }

    async def _trust(self, configuration: Mapping[str, Any], bundle: bytes) -> None:
        wanted = b64encode(bundle).decode()
        webhooks = configuration.get("webhooks") or []
        behind = [one["name"] for one in webhooks if one["clientConfig"].get("caBundle") != wanted]
        if not behind:
            return
        change = {
            "metadata": {"resourceVersion": configuration["metadata"]["resourceVersion"]},
            "webhooks": [{"name": name, "clientConfig": {"caBundle": wanted}} for name in behind],
        }
        await self.client.patch(VALIDATINGWEBHOOKCONFIGURATIONS, None, CONFIGURATION, change, kind=PatchKind.STRATEGIC)


def _read(secret: Mapping[str, Any]) -> ServingPair:
    data = secret.get("data") or {}
    try:
        certificate, key, bundle = (b64decode(data.get(name) or "") for name in (CERTIFICATE, KEY, _BUNDLE))
    except (NotBase64, TypeError, ValueError):
        return ServingPair(b"", b"", b"")
    return ServingPair(certificate, key, bundle)
