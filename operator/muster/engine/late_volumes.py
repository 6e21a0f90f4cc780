"""Has the volumes made that were waiting for a node (WaitForFirstConsumer), before their pod is bound to it.

A claim whose volume is made on demand is told the node by an annotation, as kube-scheduler does it; a volume that is
there already is kept for the claim by its `claimRef`. Then Kubernetes' own controllers bind the two, which may take as
long as a volume needs to be made. Saying it twice is harmless, so a restart in between is too.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from muster.engine.clock import Clock
from muster.engine.storage_specs import SELECTED_NODE
from muster.kube.client import ApiClient
from muster.kube.errors import ApiError, NotFound
from muster.kube.resource import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES
from muster.kube.storage_objects import PersistentVolume, PersistentVolumeClaim
from muster.scheduler.outcome import Binding

logger = logging.getLogger(__name__)

_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_PAUSES: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class LateVolumes:
    """Asks for volumes and waits until they are bound, `patience` seconds at most."""

    def __init__(self, client: ApiClient, clock: Clock, *, patience: float = 600.0) -> None:
        self._client = client
        self._clock = clock
        self._patience = patience

    async def bind(self, binding: Binding) -> str:
        """Return an empty text once all claims of the binding are bound, else what went wrong."""
        for key, volume in binding.volumes:
            namespace, _, name = key.partition("/")
            try:
                complaint = await self._bind_one(namespace, name, volume, binding.node)
            except ApiError as error:
                complaint = f"persistentvolumeclaim {name!r}: {error}"
            if complaint:
                return complaint
        return ""

    async def _bind_one(self, namespace: str, name: str, volume: str, node: str) -> str:
        claim = await self._read(namespace, name)
        if not _is_bound(claim):
            if volume:
                complaint = await self._keep(volume, claim)
                if complaint:
                    return complaint
            elif claim.metadata.annotations.get(SELECTED_NODE) != node:
                await self._select(claim, node)
        return await self._wait(namespace, name, volume, node)

    async def _read(self, namespace: str, name: str) -> PersistentVolumeClaim:
        return await self._client.get(PERSISTENTVOLUMECLAIMS, namespace, name, decode=PersistentVolumeClaim)

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> None:
        patch = {"metadata": {"uid": claim.metadata.uid, "annotations": {SELECTED_NODE: node}}}
        await self._client.patch(PERSISTENTVOLUMECLAIMS, claim.metadata.namespace, claim.metadata.name, patch)

    async def _keep(self, volume: str, claim: PersistentVolumeClaim) -> str:
        """Have the volume kept for the claim; say so when it is kept for another."""
        found = await self._client.get(PERSISTENTVOLUMES, None, volume, decode=PersistentVolume)
        kept_for, meta = found.spec.claim_ref, claim.metadata
        if kept_for is not None:
            if (kept_for.namespace, kept_for.name) != (meta.namespace, meta.name) or kept_for.uid not in ("", meta.uid):
                return f"persistentvolume {volume!r} is kept for {kept_for.namespace}/{kept_for.name} already"
            if kept_for.uid:
                return ""
        reference: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        }
        # Somebody may take the volume between this read and the write: the version says so.
        precondition = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
        patch = {
            "metadata": {**precondition, "annotations": {_BY_CONTROLLER: "yes"}},
            "spec": {"claimRef": reference},
        }
        await self._client.patch(PERSISTENTVOLUMES, None, volume, patch)
        return ""

    async def _wait(self, namespace: str, name: str, volume: str, node: str) -> str:
        deadline = self._clock.now() + self._patience
        for turn in range(1_000_000):
            try:
                claim = await self._read(namespace, name)
            except NotFound:
                raise
            except ApiError as error:
                logger.info("persistentvolumeclaim %s/%s can't be read: %s", namespace, name, error)
            else:
                if _is_bound(claim):
                    return ""
                if not volume and claim.metadata.annotations.get(SELECTED_NODE) != node:
                    return f"no volume could be made for persistentvolumeclaim {name!r} on {node}"
            if self._clock.now() >= deadline:
                break
            await self._clock.sleep(_PAUSES[min(turn, len(_PAUSES) - 1)])
        return f"persistentvolumeclaim {name!r} got no volume within {self._patience:.0f} s"


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and claim.status.phase == "Bound"
