"""Questions that tests ask of a RayJob and of what belongs to it."""

from __future__ import annotations

from typing import Any

from tests.e2e.api import Api, Manifest, wait_until
from tests.e2e.observer import group_of

TERMINAL = ("Complete", "Failed")


def status_of(api: Api, name: str, namespace: str) -> Manifest:
    """The RayJob's status; empty where there is no such job or it has none yet."""
    job = api.get("RayJob", name, namespace)
    return (job or {}).get("status") or {}


def wait_for_deployment_status(api: Api, name: str, namespace: str, wanted: str, *, within: float) -> Manifest:
    """The status once jobDeploymentStatus is `wanted`; fails at once where another terminal state is reached."""

    def probe() -> Manifest | None:
        status = status_of(api, name, namespace)
        reached = status.get("jobDeploymentStatus")
        if reached in TERMINAL and wanted in TERMINAL and reached != wanted:
            raise AssertionError(f"RayJob {name} is {reached}, not {wanted}: {status}")
        return status if reached == wanted else None

    try:
        return wait_until(probe, f"RayJob {name} is {wanted}", within=within)
    except AssertionError as error:
        raise AssertionError(f"{error}; status is {status_of(api, name, namespace)}") from None


def gang_pods(api: Api, name: str, namespace: str) -> list[Manifest]:
    """The Ray pods and the submitter of a RayJob."""
    return [pod for pod in api.list("Pod", namespace) if group_of(pod) == f"ray-{name}-pg"]


def head_pod(api: Api, name: str, namespace: str) -> Manifest | None:
    """The head of a RayJob's cluster, if there is one that is not on its way out."""
    heads = [
        pod
        for pod in gang_pods(api, name, namespace)
        if pod["metadata"]["labels"].get("ray.io/node-type") == "head" and not pod["metadata"].get("deletionTimestamp")
    ]
    return heads[0] if heads else None


def submitter_pods(api: Api, name: str, namespace: str) -> list[Manifest]:
    """The pods of the submitter Job, which has the RayJob's name."""
    return api.list("Pod", namespace, label_selector=f"batch.kubernetes.io/job-name={name}")


def exit_codes(pods: list[Manifest]) -> list[int]:
    """The exit status of the first container of each pod that has ended."""
    states = [(pod["status"].get("containerStatuses") or [{}])[0].get("state", {}) for pod in pods]
    return [state["terminated"]["exitCode"] for state in states if "terminated" in state]


def wait_for_exit_codes(api: Api, name: str, namespace: str, *, within: float) -> list[int]:
    """The exit statuses of the submitter's pods once at least one has ended."""
    return wait_until(
        lambda: exit_codes(submitter_pods(api, name, namespace)), f"the submitter of {name} has ended", within=within
    )


def events_about(api: Api, kind: str, name: str, namespace: str) -> list[Manifest]:
    """The events that regard an object."""
    return [
        event
        for event in api.list("Event", namespace)
        if event.get("regarding", {}).get("kind") == kind and event["regarding"].get("name") == name
    ]


def wait_for_event(
    api: Api, kind: str, name: str, namespace: str, *, reason: str | None = None, text: str = "", within: float = 30
) -> Manifest:
    """The first Warning about an object with that reason whose note contains `text`."""

    def probe() -> Any:
        for event in events_about(api, kind, name, namespace):
            fits = reason is None or event.get("reason") == reason
            if event.get("type") == "Warning" and fits and text in (event.get("note") or ""):
                return event
        return None

    found: Manifest = wait_until(probe, f"a Warning about {kind} {name} with {text!r}", within=within)
    return found


def wait_for_refusal(api: Api, pod_group: str, namespace: str, *words: str, within: float = 60) -> str:
    """What a PodGroup says of why it waits, once that has all the words (while its pods are made it says others)."""
    said = ""

    def probe() -> str | None:
        nonlocal said
        found = condition(api.get("PodGroup", pod_group, namespace), "Unschedulable")
        said = found["message"] if found else ""
        return said if found and all(word in said for word in words) else None

    try:
        return wait_until(probe, f"PodGroup {pod_group} waits for {', '.join(words)}", within=within)
    except AssertionError as error:
        raise AssertionError(f"{error}; it says {said!r}") from None


def condition(pod_group: Manifest | None, kind: str) -> Manifest | None:
    """A PodGroup's condition of a type, if it holds."""
    for entry in ((pod_group or {}).get("status") or {}).get("conditions") or []:
        if entry["type"] == kind and entry["status"] == "True":
            found: Manifest = entry
            return found
    return None
