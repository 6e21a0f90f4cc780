"""What a test with devices (DRA) puts into the API server: a class, slices of nodes, claims, and pods that claim."""

from __future__ import annotations

from typing import Any

from muster.kube.client import ApiClient
from muster.kube.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from muster.kube.objects import Pod
from muster.kube.resource import DEVICECLASSES, PODS, RESOURCECLAIMS, RESOURCESLICES, Resource
from tests.integration.gang_objects import GATE, Gangs, eventually

DRIVER = "gpu.example.com"
TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


class Devices:
    """The devices of a test. Its class is its own, so that what other tests left is none of its business."""

    def __init__(self, gangs: Gangs) -> None:
        self.api: ApiClient = gangs.api
        self.gangs = gangs
        self.namespace = gangs.namespace
        self.device_class = f"{gangs.namespace}-gpu"

    async def clear_cluster(self) -> None:
        """Take away what earlier tests left, and wait for the namespace to be ready for pods."""
        for pod in await self.api.list(PODS, decode=Pod):
            await self.api.delete(PODS, pod.metadata.namespace, pod.metadata.name)
        for found in await self.api.list(RESOURCESLICES, decode=ResourceSlice):
            await self.api.delete(RESOURCESLICES, None, found.metadata.name)
        for kind in await self.api.list(DEVICECLASSES, decode=DeviceClass):
            await self.api.delete(DEVICECLASSES, None, kind.metadata.name)

        async def has_account() -> bool:
            return bool(await self.api.list(SERVICE_ACCOUNTS, self.namespace))

        await eventually(has_account, "the namespace has its service account")

    async def make_class(self, expression: str = f'device.driver == "{DRIVER}"') -> None:
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        await self._create(DEVICECLASSES, None, self.device_class, spec)

    async def publish(self, node: str, count: int, *, model: str = "a100", memory: str = "40Gi") -> None:
        """Do a driver's work: say which devices a node has."""
        device: dict[str, Any] = {
            "attributes": {"model": {"string": model}, "driverVersion": {"version": "1.2.3"}},
            "capacity": {"memory": {"value": memory}},
        }
        devices = [{"name": f"gpu-{index}", **device} for index in range(count)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        await self._create(
            RESOURCESLICES, None, node, {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        )

    async def claim(self, name: str, count: int = 1, *selectors: str) -> None:
        await self._create(RESOURCECLAIMS, self.namespace, name, self._claim_spec(count, *selectors))

    async def claim_tied(self, name: str, count: int, attribute: str) -> None:
        """A claim to devices that must have the same value of an attribute."""
        spec = self._claim_spec(count)
        spec["devices"]["constraints"] = [{"matchAttribute": attribute}]
        await self._create(RESOURCECLAIMS, self.namespace, name, spec)

    async def template(self, name: str, count: int = 1) -> None:
        await self._create(TEMPLATES, self.namespace, name, {"spec": self._claim_spec(count)})

    def _claim_spec(self, count: int, *selectors: str) -> dict[str, Any]:
        expressions = [{"cel": {"expression": each}} for each in selectors]
        exactly = {"deviceClassName": self.device_class, "count": count, "selectors": expressions}
        return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}

    async def pod(self, name: str, group: str, claim: str = "", *, template: str = "", **spec: Any) -> Pod:
        """A pod of the default scheduler, held by our gate."""
        source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim or name}
        spec = {"schedulerName": "default-scheduler", "gates": (GATE,), **spec}
        return await self.gangs.pod(name, group, resourceClaims=[{"name": "gpu", **source}], **spec)

    async def gang(self, name: str, size: int, **spec: Any) -> list[str]:
        """A PodGroup, its pods, and a claim to one device for each of them."""
        await self.gangs.pod_group(name, size)
        names = [f"{name}-{index}" for index in range(size)]
        for each in names:
            await self.claim(each)
            await self.pod(each, name, **spec)
        return names

    async def read_claim(self, name: str) -> ResourceClaim:
        return await self.api.get(RESOURCECLAIMS, self.namespace, name, decode=ResourceClaim)

    async def _create(self, resource: Resource, namespace: str | None, name: str, spec: dict[str, Any]) -> None:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
        await self.api.create(resource, namespace, body)
