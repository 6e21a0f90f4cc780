"""What happened in a namespace, in order, as the API server told it.

An observer watches pods, PodGroups and RayJobs from the moment it starts and keeps every version of every object that
it was sent, so that a test can say what was never true, and the demo can print what happens while it happens.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kubernetes import watch
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from tests.e2e.api import Api, Manifest


@dataclass(frozen=True)
class Sighting:
    """One version of one object. `at` is seconds since the observer started."""

    at: float
    kind: str
    change: str
    object: Manifest

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])


@dataclass
class Observer:
    """Records changes of the named kinds in a namespace until it is left."""

    api: Api
    namespace: str
    kinds: tuple[str, ...] = ("Pod", "PodGroup", "RayJob")
    on_sighting: Callable[[Sighting], None] | None = None
    sightings: list[Sighting] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._watchers: list[watch.Watch] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Observer:
        for kind in self.kinds:
            version = self.api.resource(kind).get(namespace=self.namespace).metadata.resourceVersion
            watcher = watch.Watch()
            thread = threading.Thread(target=self._follow, args=(kind, version, watcher), daemon=True)
            self._watchers.append(watcher)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for watcher in self._watchers:
            watcher.stop()

    def _follow(self, kind: str, version: str, watcher: watch.Watch) -> None:
        while not self._stopped.is_set():
            try:
                for event in self.api.watch(kind, self.namespace, version, watcher):
                    content = event["raw_object"]
                    version = content["metadata"]["resourceVersion"]
                    self._record(Sighting(time.monotonic() - self._started, kind, event["type"], content))
                    if self._stopped.is_set():
                        return
            except (ApiException, HTTPError, OSError):
                # The server ended the watch or is restarting: go on from the last version seen.
                self._stopped.wait(0.2)

    def _record(self, sighting: Sighting) -> None:
        with self._lock:
            self.sightings.append(sighting)
        if self.on_sighting is not None:
            self.on_sighting(sighting)

    def of(self, kind: str, name: str | None = None) -> list[Sighting]:
        """The sightings of a kind (and of one object), oldest first."""
        with self._lock:
            return [s for s in self.sightings if s.kind == kind and (name is None or s.name == name)]

    def phases(self, pod_group: str) -> list[str]:
        """The phases that a PodGroup went through, each once per stay."""
        return without_repeats(s.object.get("status", {}).get("phase", "") for s in self.of("PodGroup", pod_group))

    def pods_of_gang(self, pod_group: str) -> list[Sighting]:
        """The sightings of all pods that name a PodGroup."""
        return [s for s in self.of("Pod") if group_of(s.object) == pod_group]

    def first_bound(self, pod_group: str) -> dict[str, float]:
        """When each pod of a gang was first seen on a node, by pod name."""
        first: dict[str, float] = {}
        for sighting in self.pods_of_gang(pod_group):
            if sighting.object["spec"].get("nodeName"):
                first.setdefault(sighting.name, sighting.at)
        return first


def group_of(pod: Manifest) -> str | None:
    """The PodGroup that a pod names."""
    annotations: dict[str, str] = pod["metadata"].get("annotations") or {}
    return annotations.get("scheduling.k8s.io/group-name")


def without_repeats(values: Iterable[Any]) -> list[Any]:
    """The values with immediate repetitions left out."""
    result: list[Any] = []
    for value in values:
        if not result or result[-1] != value:
            result.append(value)
    return result
