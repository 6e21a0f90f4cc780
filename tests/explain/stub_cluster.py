"""As much of a client as `muster explain` needs: objects to get and to list, some of them forbidden."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import msgspec

from muster.kube.client import ApiClient, ListMeta, Page
from muster.kube.errors import ApiError, Forbidden, NotFound
from muster.kube.resource import Resource


class StubCluster:
    """`forbidden` are the plural names of what may not be listed."""

    def __init__(self, *objects: dict[str, Any], forbidden: tuple[str, ...] = ()) -> None:
        self.objects = objects
        self.forbidden = forbidden

    def client(self) -> ApiClient:
        return cast(ApiClient, self)

    async def get(self, resource: Resource, namespace: str | None, name: str, *, decode: Any = dict) -> Any:
        for each in self._of(resource):
            meta = each["metadata"]
            if meta["name"] == name and meta.get("namespace") == namespace:
                return msgspec.convert(each, type=decode) if decode is not dict else each
        raise NotFound(404, "NotFound", f"{resource.plural} {name} not found")

    async def pages(self, resource: Resource, *, chunk: int = 500) -> AsyncIterator[Page]:
        del chunk
        if resource.plural in self.forbidden:
            raise Forbidden(403, "Forbidden", f"{resource.plural} is forbidden")
        items = [msgspec.Raw(msgspec.json.encode(each)) for each in self._of(resource)]
        yield Page(ListMeta(), items)

    def _of(self, resource: Resource) -> list[dict[str, Any]]:
        return [
            each for each in self.objects if (each["apiVersion"], each["kind"]) == (resource.api_version, resource.kind)
        ]

    async def list(
        self, resource: Resource, namespace: str | None = None, *, field_selector: str = "", decode: Any = dict
    ) -> Any:
        if resource.plural in self.forbidden:
            raise Forbidden(403, "Forbidden", f"{resource.plural} is forbidden")
        wanted = [part.split("=") for part in field_selector.split(",") if part]
        return [
            msgspec.convert(each, type=decode)
            for each in self._of(resource)
            if each["metadata"]["namespace"] == namespace and all(_field(each, path) == value for path, value in wanted)
        ]


def _field(found: Any, path: str) -> Any:
    for name in path.split("."):
        found = found.get(name, "")
    return found


__all__ = ["ApiError", "StubCluster"]
