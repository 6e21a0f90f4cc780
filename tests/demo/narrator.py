"""Tells on standard output what happens to one RayJob: each PodGroup phase, each pod that gets a node, each state."""

from __future__ import annotations

import threading

from tests.e2e.observer import Sighting, group_of


class Narrator:
    """Prints a line for each change that a user would want to see. Called from the observer's threads."""

    def __init__(self, job: str, group: str) -> None:
        self._job = job
        self._group = group
        self._last: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def __call__(self, sighting: Sighting) -> None:
        """Tells of one sighting, if it brings news."""
        if sighting.change == "DELETED":
            return
        if sighting.kind == "PodGroup" and sighting.name == self._group:
            self._pod_group(sighting)
        elif sighting.kind == "RayJob" and sighting.name == self._job:
            self._ray_job(sighting)
        elif sighting.kind == "Pod" and group_of(sighting.object) == self._group:
            self._pod(sighting)

    def output(self, line: str) -> None:
        """Prints a line of the job's own output."""
        with self._lock:
            print(f"         | {line}", flush=True)

    def _pod_group(self, sighting: Sighting) -> None:
        spec, status = sighting.object["spec"], sighting.object.get("status") or {}
        size = f"minMember {spec.get('minMember')}, queue {spec.get('queue')}"
        self._tell(sighting, f"PodGroup {sighting.name}: {status.get('phase', '')}", f"  ({size})")
        for condition in status.get("conditions") or []:
            if condition["type"] == "Unschedulable" and condition["status"] == "True":
                self._tell(sighting, f"  waits: {condition['message']}", aspect="reason")

    def _ray_job(self, sighting: Sighting) -> None:
        status = sighting.object.get("status") or {}
        states = [state for state in (status.get("jobDeploymentStatus"), status.get("jobStatus")) if state]
        if states:
            self._tell(sighting, f"RayJob {sighting.name}: {', '.join(states)}")

    def _pod(self, sighting: Sighting) -> None:
        node = sighting.object["spec"].get("nodeName")
        if node:
            self._tell(sighting, f"  pod {sighting.name} bound to {node}")

    def _tell(self, sighting: Sighting, line: str, aside: str = "", *, aspect: str = "state") -> None:
        """Prints a line unless it is the last that was said of this aspect of this object."""
        about = (sighting.name, aspect)
        with self._lock:
            if self._last.get(about) == line:
                return
            self._last[about] = line
            print(f"{sighting.at:6.1f}s  {line}{aside}", flush=True)
