"""RayClusters from their creation to `ready`, on a real API server with fake nodes: the whole operator at work.

    python -m bench.controllers [--clusters 1000] [--nodes 300] [--runs 3] [--system NAME=COMMAND]…

Systems run in turn, each on a fresh control plane, in alternating order: `muster` (controllers and scheduler, one
process), `ceiling` (a plain client that makes the same objects and binds the pods, with nothing to decide), and
whatever `--system` names: a command line with `{kubeconfig}` in it, such as KubeRay's operator. A line a run: clusters
a second from the first creation to the last `ready`, seconds of processor and peak memory of the system, writes at the
API server for each cluster (the creation of the RayCluster itself not counted), and writes in the seconds after.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from muster.kube.client import ApiClient
from muster.kube.config import load_connection
from muster.kube.informer import Change, Informer
from muster.kube.objects import ApiObject
from muster.kube.resource import NAMESPACES, PODGROUPS, PODS, RAYCLUSTERS, SERVICES
from tests.cluster.control_plane import ControlPlane

MUSTER = (
    f"{sys.executable} -c 'from muster.cli import main; main()' run --kubeconfig {{kubeconfig}} "
    "--components controllers,scheduler --no-leader-election --submitter-image muster --health-port 0 --metrics-port 0 "
    "--log-level warning"
)
QUIET_SECONDS = 15
LIMIT_SECONDS = 900
WORKERS = 2
_WRITES = re.compile(r'^apiserver_request_total\{.*verb="(POST|PUT|PATCH|DELETE|APPLY)".*\} (\S+)$', re.MULTILINE)


class ClusterStatus(msgspec.Struct):
    """What is watched of a RayCluster."""

    state: str = ""


class Watched(ApiObject, frozen=True):
    """A RayCluster, as far as it is watched."""

    status: ClusterStatus = msgspec.field(default_factory=ClusterStatus)


@dataclass(frozen=True, slots=True)
class Result:
    rate: float
    processor: float
    peak_mib: float
    writes: float
    writes_after: int

    def row(self, system: str) -> str:
        return (
            f"{system:12} {self.rate:8.1f} {self.processor:10.1f} {self.peak_mib:9.0f} "
            f"{self.writes:9.1f} {self.writes_after:8d}"
        )


HEADER = f"{'system':12} {'per s':>8} {'ms/cluster':>10} {'peak MiB':>9} {'writes':>9} {'after':>8}"


def ray_cluster(index: int) -> dict[str, Any]:
    def template(name: str) -> dict[str, Any]:
        resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
        return {"spec": {"containers": [{"name": name, "image": "rayproject/ray:2.52.0", "resources": resources}]}}

    workers = {
        "groupName": "workers",
        "replicas": WORKERS,
        "minReplicas": WORKERS,
        "maxReplicas": WORKERS,
        "rayStartParams": {},
        "template": template("ray-worker"),
    }
    head = {"rayStartParams": {}, "template": template("ray-head")}
    spec = {"rayVersion": "2.52.0", "headGroupSpec": head, "workerGroupSpecs": [workers]}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": f"c{index:05d}"}, "spec": spec}


def writes(plane: ControlPlane) -> int:
    """All writes that the API server has answered so far, Leases left out."""
    text = plane.api.text("/metrics")
    return sum(int(float(found[2])) for found in _WRITES.finditer(text) if 'resource="leases"' not in found[0])


@contextmanager
def running(command: str, plane: ControlPlane) -> Iterator[subprocess.Popen[bytes]]:
    arguments = shlex.split(command.format(kubeconfig=plane.kubeconfig))
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    with (plane.folder / "system.log").open("wb") as log:
        process = subprocess.Popen(arguments, env=environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def usage(pid: int) -> tuple[float, float]:
    """Seconds of processor, and peak memory in MiB, of a process."""
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        fields = file.read().rpartition(")")[2].split()
    with open(f"/proc/{pid}/status") as file:  # noqa: PTH123
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak / 1024


@asynccontextmanager
async def clients(plane: ControlPlane) -> AsyncIterator[ApiClient]:
    async with ApiClient(load_connection(plane.kubeconfig), user_agent="bench", concurrency=50) as client:
        yield client


class Counter:
    """Counts clusters that have become ready, by a watch."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.ready: set[str] = set()
        self.done = asyncio.Event()
        self.at = 0.0

    def __call__(self, change: Change[Watched]) -> None:
        if change.object.status.state == "ready":
            self.ready.add(change.object.metadata.name)
        if len(self.ready) >= self.wanted and not self.done.is_set():
            self.at = time.monotonic()
            self.done.set()


async def apply_and_wait(plane: ControlPlane, clusters: int, pid: int) -> Result:
    async with clients(plane) as client:
        await client.create(NAMESPACES, None, {"metadata": {"name": "bench"}})
        informer = Informer(client, RAYCLUSTERS, Watched)
        counter = Counter(clusters)
        informer.subscribe(counter)
        watch = asyncio.create_task(informer.run())
        try:
            await informer.wait_synced(60)
            before, (processor, _) = writes(plane), usage(pid)
            started = time.monotonic()
            await asyncio.gather(*(client.create(RAYCLUSTERS, "bench", ray_cluster(i)) for i in range(clusters)))
            async with asyncio.timeout(LIMIT_SECONDS):
                await counter.done.wait()
        except TimeoutError:
            raise SystemExit(f"only {len(counter.ready)} of {clusters} became ready in {LIMIT_SECONDS} s") from None
        finally:
            watch.cancel()
        used, peak = usage(pid)
        made = writes(plane) - before - clusters
        await asyncio.sleep(5)  # what was under way when the last one became ready
        settled = writes(plane)
        await asyncio.sleep(QUIET_SECONDS)
        return Result(
            rate=clusters / (counter.at - started),
            processor=(used - processor) * 1000 / clusters,
            peak_mib=peak,
            # kwok writes the status of each pod once.
            writes=(made - clusters * (1 + WORKERS)) / clusters,
            writes_after=writes(plane) - settled,
        )


async def ceiling(plane: ControlPlane, clusters: int, nodes: int) -> Result:
    """The same objects by a plain client: PodGroup, service and pods; gates off, bindings, and one status."""
    async with clients(plane) as client:
        await client.create(NAMESPACES, None, {"metadata": {"name": "bench"}})
        before = writes(plane)
        processor, started = time.process_time(), time.monotonic()

        async def one(index: int) -> None:
            cluster = await client.create(RAYCLUSTERS, "bench", ray_cluster(index))
            name = cluster["metadata"]["name"]
            group = {"metadata": {"name": f"ray-{name}-pg"}, "spec": {"minMember": 1 + WORKERS}}
            await client.create(PODGROUPS, "bench", {**kind(PODGROUPS), **group})
            ports = [{"name": "client", "port": 10001}]
            service = {"metadata": {"name": f"{name}-head-svc"}, "spec": {"ports": ports, "clusterIP": "None"}}
            await client.create(SERVICES, "bench", {**kind(SERVICES), **service})
            for member in range(1 + WORKERS):
                await pod(client, f"{name}-{member}", f"n{(index * (1 + WORKERS) + member) % nodes}")
            await client.patch(RAYCLUSTERS, "bench", name, {"status": {"state": "ready"}}, subresource="status")

        await asyncio.gather(*(one(index) for index in range(clusters)))
        took = time.monotonic() - started
        used = time.process_time() - processor
        made = writes(plane) - before - clusters
        return Result(clusters / took, used * 1000 / clusters, usage(os.getpid())[1], made / clusters, 0)


async def pod(client: ApiClient, name: str, node: str) -> None:
    template = ray_cluster(0)["spec"]["headGroupSpec"]["template"]["spec"]
    spec = {**template, "schedulingGates": [{"name": "bench"}]}
    made = await client.create(PODS, "bench", {**kind(PODS), "metadata": {"name": name}, "spec": spec})
    uid = made["metadata"]["uid"]
    await client.patch(PODS, "bench", name, {"metadata": {"uid": uid}, "spec": {"schedulingGates": None}})
    await client.bind("bench", name, uid=uid, node=node)


def kind(resource: Any) -> Mapping[str, str]:
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def measure(command: str | None, clusters: int, nodes: int) -> Result:
    flags = ("--enable-priority-and-fairness=false",)
    with ControlPlane.start(
        kwok=True, max_requests_inflight=4000, max_mutating_requests_inflight=4000, api_server_flags=flags
    ) as plane:
        for index in range(nodes):
            plane.add_node(f"n{index}", cpu="32", memory="128Gi")
        if command is None:
            return asyncio.run(ceiling(plane, clusters, nodes))
        with running(command, plane) as process:
            return asyncio.run(apply_and_wait(plane, clusters, process.pid))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--system", action="append", default=[], metavar="NAME=COMMAND")
    arguments = parser.parse_args()
    systems: dict[str, str | None] = {"ceiling": None, "muster": MUSTER}
    systems |= dict(each.split("=", 1) for each in arguments.system)
    rates: dict[str, list[float]] = {name: [] for name in systems}
    print(HEADER, flush=True)
    for run in range(arguments.runs):
        for name in [*systems][:: 1 if run % 2 == 0 else -1]:
            result = measure(systems[name], arguments.clusters, arguments.nodes)
            rates[name].append(result.rate)
            print(result.row(name), flush=True)
    for name, found in rates.items():
        print(f"median of {name}: {statistics.median(found):.1f} clusters/s")


if __name__ == "__main__":
    main()
