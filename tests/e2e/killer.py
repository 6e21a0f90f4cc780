"""Kills the operator's process with SIGKILL at a moment of a job's way: when its gang is being bound, or when it runs.

A pod in the host's process namespace of the operator's node does it: the operator gets no chance to clean up, and the
cluster may be any (no shell on the machine is needed).
"""

from __future__ import annotations

from typing import Literal

from tests.e2e.api import Api, Manifest, wait_until

# Runs in the pod. It finds the one process whose arguments end in `muster run …`, waits for its cue, and kills it.
PROGRAM = """
import json, os, ssl, sys, urllib.request

SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"

def operator():
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = open(f"/proc/{entry}/cmdline", "rb").read().split(b"\\0")
            except OSError:
                continue
            if any(a.endswith(b"/muster") and b == b"run" for a, b in zip(words, words[1:])):
                return int(entry)
    sys.exit("no operator process here")

def is_moment(found):
    if sys.argv[2] == "binding":
        return "ray.io/cluster" in found["metadata"].get("labels", {}) and not found["spec"].get("schedulingGates")
    return found.get("status", {}).get("jobStatus") == "RUNNING"

def wait_for_moment(path):
    token = open(f"{SECRETS}/token").read()
    context = ssl.create_default_context(cafile=f"{SECRETS}/ca.crt")
    url = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    request = urllib.request.Request(f"{url}/{path}?watch=true", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, context=context, timeout=300) as stream:
        print("armed", flush=True)
        for line in stream:
            if is_moment(json.loads(line)["object"]):
                return

victim = operator()
wait_for_moment(sys.argv[1])
os.kill(victim, 9)
print("killed", victim, flush=True)
"""

NAME = "killer"

Moment = Literal["binding", "running"]
"""When the first Ray pod is ungated; when Ray runs the job."""


def arm(api: Api, namespace: str, image: str, moment: Moment) -> None:
    """Starts the killer in a test's namespace, where it waits for the moment; the job must not be there yet."""
    watched = f"api/v1/namespaces/{namespace}/pods"
    if moment == "running":
        watched = f"apis/ray.io/v1/namespaces/{namespace}/rayjobs"
    node = operator_pod(api)["spec"]["nodeName"]
    api.apply([*permissions(namespace), killer_pod(namespace, node, image, [watched, moment])])
    wait_until(lambda: "armed" in api.logs(NAME, namespace), "the killer is armed", within=60)


def wait_for_kill(api: Api, namespace: str) -> None:
    """Returns once the operator has been killed."""
    wait_until(lambda: "killed" in api.logs(NAME, namespace), "the operator was killed", within=120)


def operator_pod(api: Api) -> Manifest:
    """The operator's pod."""
    return api.list("Pod", "muster-system", "app.kubernetes.io/name=muster")[0]


def restarts(api: Api) -> int:
    """How often the operator's container has been started again."""
    statuses = operator_pod(api)["status"].get("containerStatuses") or []
    return sum(int(status["restartCount"]) for status in statuses)


def permissions(namespace: str) -> list[Manifest]:
    """A ServiceAccount that may watch the pods and the RayJobs of its own namespace."""
    meta = {"name": NAME, "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": meta,
            "rules": [
                {"apiGroups": ["", "ray.io"], "resources": ["pods", "rayjobs"], "verbs": ["get", "list", "watch"]}
            ],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        },
    ]


def killer_pod(namespace: str, node: str, image: str, arguments: list[str]) -> Manifest:
    """The pod itself: root, in the host's process namespace, on the operator's node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "nodeName": node,
            "hostPID": True,
            "restartPolicy": "Never",
            "serviceAccountName": NAME,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": NAME,
                    "image": image,
                    "command": ["python", "-c", PROGRAM, *arguments],
                    "securityContext": {"runAsUser": 0},
                }
            ],
        },
    }
