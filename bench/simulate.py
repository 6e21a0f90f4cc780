"""`muster simulate` of a large cluster, start-up included: a snapshot (JSON in a zip) and the same as YAML.

    python -m bench.simulate [--nodes 1000] [--pods 5000] [--runs 3]

Prints seconds of the whole process, and of the processor in it, which does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MEMBERS = 5
MUSTER = [sys.executable, "-c", "from muster.cli import main; main()"]


def cluster(nodes: int, pods: int) -> Iterator[dict[str, Any]]:
    """Heterogeneous nodes; gangs of five in four queues, a third of which run."""
    for index in range(nodes):
        yield node(index)
    for index in range(4):
        queue = {"weight": index + 1, "capability": {"cpu": str(nodes * 8)}}
        yield {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", **named(f"q{index}"), "spec": queue}
    for gang in range(pods // MEMBERS):
        placed = gang % 3 == 0
        yield pod_group(gang, placed=placed)
        yield from (pod(gang, member, nodes, placed=placed) for member in range(MEMBERS))


def named(name: str, **metadata: Any) -> dict[str, Any]:
    stamp = "2026-01-01T00:00:00Z"
    return {"metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": stamp, **metadata}}


def node(index: int) -> dict[str, Any]:
    labels = {
        "kubernetes.io/hostname": f"n{index}",
        "topology.kubernetes.io/zone": f"z{index % 3}",
        "type": f"t{index % 7}",
    }
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}] if index % 10 == 0 else []
    offered = {"cpu": str(16 + index % 5 * 4), "memory": "128Gi", "pods": "110"}
    status = {"capacity": offered, "allocatable": offered, "conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        **named(f"n{index}", labels=labels),
        "spec": {"taints": taints},
        "status": status,
    }


def pod_group(gang: int, *, placed: bool) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        **named(f"g{gang}", namespace="default"),
        "spec": {"minMember": MEMBERS, "queue": f"q{gang % 4}", "minResources": {"cpu": "15", "memory": "40Gi"}},
        "status": {"phase": "Running" if placed else "Pending"},
    }


def pod(gang: int, member: int, nodes: int, *, placed: bool) -> dict[str, Any]:
    name = f"g{gang}-w-{member}"
    notes = {"scheduling.k8s.io/group-name": f"g{gang}", "volcano.sh/task-spec": "w"}
    labels = {"ray.io/cluster": f"g{gang}", "ray.io/group": "w", "ray.io/node-type": "worker"}
    amounts = {"cpu": "3", "memory": "8Gi"}
    container = {"name": "ray", "image": "ray:2.52.0", "resources": {"requests": amounts, "limits": amounts}}
    spec: dict[str, Any] = {"schedulerName": "muster", "containers": [container]}
    if placed:
        spec["nodeName"] = f"n{(gang * MEMBERS + member) % nodes}"
    else:
        spec["schedulingGates"] = [{"name": "muster.dev/gang"}]
    meta = named(name, namespace="default", labels=labels, annotations=notes)
    status = {"phase": "Running" if placed else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", **meta, "spec": spec, "status": status}


def seconds(file: Path, runs: int) -> tuple[float, float]:
    """The best of so many runs: of the wall clock, and of the processor."""
    best = (float("inf"), float("inf"))
    for _ in range(runs):
        before, start = os.times(), time.perf_counter()
        subprocess.run([*MUSTER, "simulate", str(file), "-o", "json"], check=True, stdout=subprocess.DEVNULL)
        wall, after = time.perf_counter() - start, os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        best = (min(best[0], wall), min(best[1], cpu))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    manifests = list(cluster(options.nodes, options.pods))
    with tempfile.TemporaryDirectory() as folder:
        zipped, text = Path(folder, "snapshot.zip"), Path(folder, "cluster.yaml")
        with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("all.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
        text.write_text(yaml.dump_all(manifests, Dumper=yaml.CSafeDumper, sort_keys=False))
        print(f"{options.nodes} nodes, {options.pods} pods: one cycle, start-up included")
        for file in (zipped, text):
            wall, cpu = seconds(file, options.runs)
            print(f"  {file.suffix[1:]:5} {wall:6.2f} s, {cpu:6.2f} s of the processor")


if __name__ == "__main__":
    main()
