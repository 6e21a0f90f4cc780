"""The harness's own small access to an API server: enough to wait for it and to put objects into it.

Tests of Muster's client use Muster's client; this one is independent, so that a fault there cannot hide here.
"""

from __future__ import annotations

import functools
import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class ApiAccess:
    """A client of one API server, authenticated by a certificate; a context manager."""

    def __init__(self, server: str, *, authority: Path, certificate: Path, key: Path) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        context.load_cert_chain(certificate, key)
        self._client = httpx.Client(base_url=server, verify=context, timeout=10.0, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def status(self, path: str) -> int:
        """Return the HTTP status of a GET, or 0 when there is no answer."""
        try:
            return self._client.get(path).status_code
        except httpx.TransportError:
            return 0

    def text(self, path: str) -> str:
        """Return what stands at the path, as it is; httpx's error for any answer but a good one."""
        return self._client.get(path).raise_for_status().text

    def get(self, path: str) -> dict[str, Any]:
        """Return the object at the path; RuntimeError with the server's words for any other answer."""
        return _body(self._client.get(path))

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """POST an object to its collection."""
        return _body(self._client.post(path, json=body))

    def apply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create or change an object by server-side apply, whoever changed it before."""
        return self._patch(path, body, "application/apply-patch+yaml", {"fieldManager": "tests", "force": "true"})

    def merge(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Change an object by a JSON merge patch."""
        return self._patch(path, body, "application/merge-patch+json", {})

    def delete(self, path: str) -> dict[str, Any]:
        """Delete an object."""
        return _body(self._client.delete(path))

    def install_crds(self, documents: list[dict[str, Any]], *, deadline_seconds: float = 20.0) -> None:
        """Apply custom resource definitions and wait until the server serves all of them."""
        names = [document["metadata"]["name"] for document in documents]
        for name, document in zip(names, documents, strict=True):
            self.apply(f"{_CRDS}/{name}", document)
        for name in names:
            wait_until(functools.partial(self._established, name), f"{name} is established", deadline_seconds)

    def _established(self, name: str) -> bool:
        conditions = self.get(f"{_CRDS}/{name}").get("status", {}).get("conditions") or []
        return any(item["type"] == "Established" and item["status"] == "True" for item in conditions)

    def _patch(self, path: str, body: dict[str, Any], media_type: str, parameters: dict[str, str]) -> dict[str, Any]:
        headers = {"Content-Type": media_type}
        return _body(self._client.patch(path, content=json.dumps(body), headers=headers, params=parameters))


def wait_until(
    holds: Callable[[], bool], what: str, deadline_seconds: float, *, check: Callable[[], None] = lambda: None
) -> None:
    """Poll until `holds()`; TimeoutError naming `what` at the deadline. `check` may raise to give up early."""
    deadline = time.monotonic() + deadline_seconds
    while not holds():
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {deadline_seconds:g} s: {what}")
        time.sleep(0.03)


def _body(response: httpx.Response) -> dict[str, Any]:
    if response.is_error:
        raise RuntimeError(f"{response.request.method} {response.url}: {response.status_code} {response.text[:1000]}")
    document: dict[str, Any] = response.json()
    return document
