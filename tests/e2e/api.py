"""The API server as a test sees it: plain objects in and out, and waiting for a condition with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from kubernetes import config, dynamic
from kubernetes.dynamic.exceptions import (
    ConflictError,
    DynamicApiError,
    NotFoundError,
    UnprocessibleEntityError,
)

T = TypeVar("T")
Manifest = dict[str, Any]

FIELD_MANAGER = "muster-e2e"


class Api:
    """Reads and writes objects of any kind in the cluster that a kubeconfig names."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._client = dynamic.DynamicClient(config.new_client_from_config(str(kubeconfig)))

    def resource(self, kind: str, api_version: str | None = None) -> Any:
        """The dynamic client's handle of a kind; `api_version` where the kind alone is ambiguous."""
        return self._client.resources.get(kind=kind, api_version=api_version or API_VERSIONS[kind])

    def apply(self, documents: Iterable[Manifest]) -> None:
        """Creates or changes objects by server-side apply, as `kubectl apply --server-side` does."""
        for document in documents:
            namespace = document["metadata"].get("namespace")
            self.resource(document["kind"], document["apiVersion"]).server_side_apply(
                body=document, namespace=namespace, field_manager=FIELD_MANAGER, force_conflicts=True
            )

    def refusal(self, document: Manifest) -> str | None:
        """Applies one object; the API server's words where it is refused, None where it is stored."""
        try:
            self.apply([document])
        except UnprocessibleEntityError as error:
            return str(error.body)
        return None

    def get(self, kind: str, name: str, namespace: str | None = None) -> Manifest | None:
        """One object, or None where there is none."""
        try:
            return plain(self.resource(kind).get(name=name, namespace=namespace))
        except NotFoundError:
            return None

    def list(self, kind: str, namespace: str | None = None, label_selector: str | None = None) -> list[Manifest]:
        """All objects of a kind, in one namespace or in all."""
        found = self.resource(kind).get(namespace=namespace, label_selector=label_selector)
        return [{**item, "kind": kind} for item in plain(found)["items"]]

    def merge_patch(self, kind: str, name: str, namespace: str | None, patch: Manifest) -> None:
        """Changes some fields of an object."""
        self.resource(kind).patch(
            body=patch, name=name, namespace=namespace, content_type="application/merge-patch+json"
        )

    def delete(self, kind: str, name: str, namespace: str | None = None, **options: Any) -> None:
        """Deletes an object in the background; nothing happens where it is gone already."""
        try:
            self.resource(kind).delete(
                name=name, namespace=namespace, body={"propagationPolicy": "Background", **options}
            )
        except (NotFoundError, ConflictError):
            return

    def logs(self, pod: str, namespace: str) -> str:
        """What a pod has printed so far; empty before its container starts."""
        try:
            answer = self._client.request("get", f"/api/v1/namespaces/{namespace}/pods/{pod}/log", raw_response=True)
        except Exception as error:
            if getattr(error, "status", None) in (400, 404):
                return ""
            raise
        return str(answer)

    def dashboard(self, method: str, head: Manifest, path: str, body: Manifest | None = None) -> tuple[int, str]:
        """Asks Ray's dashboard in a head pod, through the API server; its status code and what it says."""
        meta = head["metadata"]
        place = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}:8265/proxy{path}"
        try:
            answer = self._client.request(method, place, body=body, serialize=False)
        except DynamicApiError as error:
            return int(error.status), str(error.body)
        return int(answer.status), answer.data.decode()

    def watch(self, kind: str, namespace: str | None, resource_version: str | None, watcher: Any) -> Iterable[Any]:
        """Events of a kind from a version on, until `watcher` is stopped or the server ends the watch."""
        events = watcher.stream(
            self.resource(kind).get, namespace=namespace, resource_version=resource_version, serialize=False
        )
        # None stands for a line that was cut off with the connection: whoever goes on from the last version gets it.
        return (event for event in events if event is not None)


API_VERSIONS = {
    "Pod": "v1",
    "Node": "v1",
    "Service": "v1",
    "Secret": "v1",
    "ConfigMap": "v1",
    "Namespace": "v1",
    "Event": "events.k8s.io/v1",
    "Job": "batch/v1",
    "Deployment": "apps/v1",
    "Lease": "coordination.k8s.io/v1",
    "RayJob": "ray.io/v1",
    "RayCluster": "ray.io/v1",
    "PodGroup": "scheduling.volcano.sh/v1beta1",
    "Queue": "scheduling.volcano.sh/v1beta1",
}


def plain(answer: Any) -> Manifest:
    """The dynamic client's answer as plain dicts and lists."""
    content: Manifest = answer.to_dict()
    return content


def wait_until(probe: Callable[[], T | None], what: str, *, within: float, every: float = 0.2) -> T:
    """The first true answer of `probe`, asked every `every` seconds; AssertionError naming `what` after `within`."""
    end = time.monotonic() + within
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"not within {within:.0f} s: {what}")
        time.sleep(every)
