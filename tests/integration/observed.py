"""What a test reads of a namespace, and how it waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from muster.kube.client import ApiClient
from muster.kube.errors import NotFound
from muster.kube.resource import EVENTS, JOBS, PODGROUPS, PODS, RAYCLUSTERS, RAYJOBS, SERVICES, Resource
from tests.integration.operators import PATIENCE, eventually

Object = dict[str, Any]


class Hearsay(Protocol):
    """Whoever watches the namespace anyway."""

    def heard(self, resource: Resource) -> list[Object] | None:
        """The objects of a kind, a moment old at the most; None for a kind that is not watched."""


class Observed:
    """The objects of one namespace, read from the API server each time.

    Where somebody `watches` the namespace, a wait asks the API server only when the watch says that it is over: else
    the questions of a test that waits would be half of what an API server has to do here.
    """

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.watches: Hearsay | None = None

    async def get(self, resource: Resource, name: str) -> Object | None:
        """One object, None when there is none."""
        try:
            return await self.api.get(resource, self.namespace if resource.namespaced else None, name)
        except NotFound:
            return None

    async def all(self, resource: Resource) -> list[Object]:
        """All objects of a kind."""
        return await self.api.list(resource, self.namespace)

    async def names(self, resource: Resource) -> set[str]:
        """Their names."""
        return {one["metadata"]["name"] for one in await self.all(resource)}

    async def pods(self, group: str | None = None) -> list[Object]:
        """The Ray pods that are not on their way out, of one group if given."""
        found = [pod for pod in await self.all(PODS) if not pod["metadata"].get("deletionTimestamp")]
        return [pod for pod in found if group is None or pod["metadata"]["labels"]["ray.io/group"] == group]

    async def events(self, reason: str, about: Resource | None = None) -> list[str]:
        """The notes of the events with this reason, those about objects of one kind if given."""
        return [
            event["note"]
            for event in await self.all(EVENTS)
            if event.get("reason") == reason and (about is None or event["regarding"]["kind"] == about.kind)
        ]

    async def event(self, reason: str, text: str = "", within: float = PATIENCE) -> str:
        """Wait for an event of this reason whose note holds `text`."""

        async def found() -> str | None:
            return next((note for note in await self.events(reason) if text in note), None)

        return str(await eventually(found, f"an event {reason} with {text!r}", within))

    async def until(
        self, resource: Resource, name: str, holds: Callable[[Object], object], what: str, within: float = PATIENCE
    ) -> Object:
        """Wait until the object is there and `holds` is true of it; the failure shows its status."""
        last: Object | None = None

        def rumoured() -> bool:
            heard = self._heard(resource)
            return heard is None or any(holds(one) for one in heard if one["metadata"]["name"] == name)

        async def probe() -> Object | None:
            nonlocal last
            if not rumoured():
                return None
            last = await self.get(resource, name)
            return last if last is not None and holds(last) else None

        try:
            return await eventually(probe, what, within)
        except AssertionError:
            last = await self.get(resource, name)
            raise AssertionError(f"{what}: not within {within} s; it is {last and last.get('status')}") from None

    async def job_state(self, name: str, state: str, within: float = PATIENCE) -> Object:
        """Wait for a RayJob's deployment status; its whole status."""
        job = await self.until(
            RAYJOBS,
            name,
            lambda job: (job.get("status") or {}).get("jobDeploymentStatus") == state,
            f"RayJob {name} is {state}",
            within,
        )
        return dict(job["status"])

    async def cluster_state(self, name: str, state: str, within: float = PATIENCE) -> Object:
        """Wait for a RayCluster's state; its whole status."""
        cluster = await self.until(
            RAYCLUSTERS,
            name,
            lambda cluster: (cluster.get("status") or {}).get("state") == state,
            f"RayCluster {name} is {state}",
            within,
        )
        return dict(cluster["status"])

    async def gone(self, *resources: Resource, within: float = PATIENCE) -> None:
        """Wait until none of these kinds is left."""

        async def empty() -> bool:
            return not any(map(self._heard, resources)) and not any([await self.all(one) for one in resources])

        await eventually(empty, f"no {', '.join(one.plural for one in resources)} left", within)

    def _heard(self, resource: Resource) -> list[Object] | None:
        return None if self.watches is None else self.watches.heard(resource)

    async def nothing_made(self) -> bool:
        """Whether no object exists that controllers make."""
        return not any([await self.all(one) for one in (PODS, SERVICES, JOBS, PODGROUPS)])


def conditions(status: Object) -> dict[str, str]:
    """Condition type to status."""
    return {entry["type"]: entry["status"] for entry in status.get("conditions") or []}
