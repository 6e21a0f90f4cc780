"""The shipped webhook configuration, for one namespace of the control plane and a server on this machine."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import yaml

from muster.admission.admission import Admission, AdmissionOptions
from muster.kube.client import ApiClient
from muster.kube.config import Connection
from muster.kube.errors import Invalid
from muster.kube.resource import RAYJOBS, VALIDATINGWEBHOOKCONFIGURATIONS
from tests.integration.operators import PATIENCE
from tests.integration.permissions import MANIFESTS, NAMESPACE
from tests.integration.ray_manifests import ray_job

LOCAL = "127.0.0.1"


def shipped() -> dict[str, Any]:
    """Give the configuration as it is shipped."""
    documents = list(yaml.safe_load_all((MANIFESTS / "admission.yaml").read_text()))
    (configuration,) = (one for one in documents if one["kind"] == VALIDATINGWEBHOOKCONFIGURATIONS.kind)
    return copy.deepcopy(configuration)


@asynccontextmanager
async def configured(api: ApiClient, namespace: str, port: int) -> AsyncIterator[None]:
    """Install it for one namespace, with the server at this port, for the length of the block."""
    configuration = shipped()
    for webhook in configuration["webhooks"]:
        path = webhook["clientConfig"].pop("service")["path"]
        webhook["clientConfig"]["url"] = f"https://{LOCAL}:{port}{path}"
        webhook["namespaceSelector"]["matchLabels"] = {"kubernetes.io/metadata.name": namespace}
    name = configuration["metadata"]["name"]
    await api.create(VALIDATINGWEBHOOKCONFIGURATIONS, None, configuration)
    try:
        yield
    finally:
        await api.delete(VALIDATINGWEBHOOKCONFIGURATIONS, None, name)


@asynccontextmanager
async def serving(connection: Connection, port: int) -> AsyncIterator[None]:
    """Run the component for the length of the block."""
    options = AdmissionOptions(port=port, hosts=(LOCAL,), namespace=NAMESPACE)
    task = asyncio.create_task(Admission(connection, options).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until_it_judges(api: ApiClient, namespace: str) -> None:
    """Return when a RayJob that can't work is refused."""

    probe = ray_job("probe", submissionMode="Nonsense")
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await api.create(RAYJOBS, namespace, probe, dry_run=True)
            except Invalid:
                return
            await asyncio.sleep(0.1)
