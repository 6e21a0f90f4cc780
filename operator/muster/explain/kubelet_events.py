"""The last Warning event about a pod that does not work yet: what is not in its status, as that a ConfigMap is missing.

Read through the core API, as `kubectl describe` does, so that who may look at pods may mostly read it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from muster.engine.notes import stated_time
from muster.kube.client import ApiClient
from muster.kube.errors import ApiError
from muster.kube.objects import Pod
from muster.kube.resource import Resource

EVENTS: Final = Resource("", "v1", "events", "Event")
MOST: Final = 5
"""Of so many pods: those of one gang mostly wait for the same."""


class _Series(msgspec.Struct, frozen=True, rename="camel"):
    last_observed_time: str | None = None


class Warned(msgspec.Struct, frozen=True, rename="camel"):
    """An event, as far as it is told."""

    type: str | None = None
    reason: str | None = None
    message: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None

    @property
    def at(self) -> float:
        """When it was last seen, in Unix seconds; 0 where that can't be told."""
        seen = self.series.last_observed_time if self.series is not None else None
        return stated_time(self.last_timestamp or seen or self.event_time) or 0.0


async def with_warnings(
    client: ApiClient, not_ready: Iterable[Mapping[str, Any]], pods: Iterable[Pod], now: float
) -> list[dict[str, Any]]:
    """The pods that are not ready, the first few with their last `warning`; without, where events can't be read."""
    uids = {pod.key: pod.metadata.uid for pod in pods}
    told = [dict(each) for each in not_ready]
    try:
        for each in told[:MOST]:
            namespace, _, name = each["pod"].partition("/")
            last = await _last_warning(client, namespace, name, uids.get(each["pod"], ""))
            if last is not None:
                each["warning"] = _document(last, now)
    except ApiError:  # the status has to do
        pass
    return told


async def _last_warning(client: ApiClient, namespace: str, name: str, uid: str) -> Warned | None:
    about = f"involvedObject.kind=Pod,involvedObject.name={name},involvedObject.uid={uid},type=Warning"
    found = await client.list(EVENTS, namespace, field_selector=about, decode=Warned)
    return max((each for each in found if each.reason), key=lambda each: each.at, default=None)


def _document(last: Warned, now: float) -> dict[str, Any]:
    document: dict[str, Any] = {"reason": last.reason, "message": last.message}
    document["age"] = max(0, int(now - last.at)) if last.at else None
    return {name: value for name, value in document.items() if value is not None}
