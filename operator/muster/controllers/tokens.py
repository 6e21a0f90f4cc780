"""The tokens by which Muster itself calls the dashboards of clusters that ask for one.

A token is read from its Secret when it is needed, and remembered for a short while: a running job is looked at every
few seconds. It goes into one header of the call and nowhere else.
"""

from __future__ import annotations

from typing import Final

from muster.api.raycluster import RayCluster
from muster.controllers.clock import Clock
from muster.kube.client import ApiClient
from muster.kube.errors import ApiError, NotFound
from muster.kube.resource import SECRETS
from muster.kube.secret_objects import Secret
from muster.ray.authentication import SECRET_KEY, VARIABLE, asks_kubernetes, token_secret_name
from muster.ray.jobs_api import DashboardUnreachable

REMEMBERED_SECONDS = 30.0
"""How long a token is used without a look at its Secret; shorter than any time-out of a running job."""

_WITH: Final = f"with what the head pod has in {VARIABLE} under the key {SECRET_KEY}"


class Tokens:
    """Reads tokens."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[float, str]] = {}

    async def of(self, cluster: RayCluster) -> str | None:
        """The token that the cluster's dashboard asks for; None where it asks for none.

        Raises DashboardUnreachable where there should be one and is not.
        """
        if asks_kubernetes(cluster):
            raise DashboardUnreachable("the dashboard takes only tokens of ServiceAccounts (enableK8sTokenAuth)")
        name = token_secret_name(cluster)
        return None if name is None else await self._token(cluster.metadata.namespace, name)

    async def _token(self, namespace: str, name: str) -> str:
        now = self._clock.now()
        self._known = {key: entry for key, entry in self._known.items() if entry[0] > now}
        known = self._known.get((namespace, name))
        if known is not None:
            return known[1]
        token = await self._read(namespace, name)
        self._known[namespace, name] = (now + REMEMBERED_SECONDS, token)
        return token

    async def _read(self, namespace: str, name: str) -> str:
        try:
            secret = await self._client.get(SECRETS, namespace, name, decode=Secret)
        except NotFound:
            text = f"Secret {name}, with the token of the dashboard, does not exist; make it again, {_WITH}"
            raise DashboardUnreachable(text) from None
        except ApiError as error:
            raise DashboardUnreachable(f"the token of the dashboard can't be read: {error.message}") from None
        fault = secret.fault(SECRET_KEY)
        if fault is not None:
            why = f"its key {SECRET_KEY} {fault.value}"
            raise DashboardUnreachable(f"Secret {name} has lost the token of the dashboard: {why}; edit it, {_WITH}")
        return str(secret.text(SECRET_KEY))
