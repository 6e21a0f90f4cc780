"""The component `admission`: the webhook and its certificate, in every process that has it, Lease or not."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from muster.admission.certificate_files import CERTIFICATE, KEY, CertificateFiles
from muster.admission.certificate_keeper import CertificateKeeper
from muster.admission.webhook import Endpoint, serve
from muster.controllers.clock import Clock, SystemClock
from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.ray.pod_options import PodOptions


@dataclass(frozen=True, slots=True)
class AdmissionOptions:
    """`port` is where the webhook listens; `hosts` are the names by which the API server calls it.

    `namespace` is Muster's own. `certificates` is a folder with tls.crt and tls.key that somebody else looks after
    (cert-manager), together with what the API server trusts; without one Muster looks after both. `pods` is what the
    operator's own configuration says of the pods that are made.
    """

    port: int
    hosts: tuple[str, ...]
    namespace: str
    certificates: Path | None = None
    pods: PodOptions = field(default_factory=PodOptions)


class Admission:
    """Serves until cancelled."""

    def __init__(self, connection: Connection, options: AdmissionOptions, *, clock: Clock | None = None) -> None:
        self._connection = connection
        self._options = options
        self._clock = clock or SystemClock()

    async def run(self) -> None:
        """Serve, and look after the certificate if nobody else does."""
        folder = self._options.certificates
        if folder is not None:
            endpoint = Endpoint(self._options.port, folder / CERTIFICATE, folder / KEY)
            await serve(self._connection, endpoint, self._options.pods)
            return
        # The key is never where another user of the machine could read it, and is gone when the process is.
        with tempfile.TemporaryDirectory(prefix="muster-admission-") as own:
            files = CertificateFiles(Path(own))
            async with ApiClient(self._connection, user_agent="muster-admission") as client:
                hosts, namespace = self._options.hosts, self._options.namespace
                await self._serve_with(CertificateKeeper(client, self._clock, namespace, hosts, files))

    async def _serve_with(self, keeper: CertificateKeeper) -> None:
        await keeper.until_usable()
        endpoint = Endpoint(self._options.port, keeper.files.certificate, keeper.files.key)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keeper.run(), name="the webhook's certificate")
            tasks.create_task(serve(self._connection, endpoint, self._options.pods), name="the webhook")
