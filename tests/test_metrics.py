"""The metrics: KubeRay's names and labels, made from what the controllers know when somebody asks."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from muster.controllers.context import ObservedRayCluster
from muster.controllers.figures import ControllerFigures
from muster.controllers.job_figures import KnownJobs
from muster.controllers.runner import Requeue, Runner
from muster.controllers.slots import Slots
from muster.controllers.workqueue import WorkQueue
from muster.kube.objects import PodGroup
from muster.metrics import metrics_text, serve_metrics
from tests.controllers.fake_clock import FakeClock

DOCUMENT = Path(__file__).parents[1] / "docs" / "metrics.md"


def cluster(**status: Any) -> ObservedRayCluster:
    metadata = {
        "name": "demo",
        "namespace": "team",
        "uid": "u1",
        "labels": {"ray.io/originated-from-crd": "RayJob"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return msgspec.convert({"metadata": metadata, "status": status}, ObservedRayCluster)


def provisioned(status: str) -> dict[str, Any]:
    return {"type": "RayClusterProvisioned", "status": status, "lastTransitionTime": "2026-01-01T00:00:42Z"}


def gang(phase: str, reason: str | None = None, queue: str | None = "research") -> PodGroup:
    annotations = {} if reason is None else {"muster.dev/reason": reason}
    raw = {"metadata": {"annotations": annotations}, "spec": {"queue": queue}, "status": {"phase": phase}}
    return msgspec.convert(raw, PodGroup)


def figures(
    *, clusters: tuple[ObservedRayCluster, ...] = (), jobs: KnownJobs | None = None, gangs: tuple[PodGroup, ...] = ()
) -> ControllerFigures:
    return ControllerFigures(clusters, list(jobs or ()), gangs, [])


Sample = tuple[str, frozenset[tuple[str, str]]]


def at(name: str, /, **labels: str) -> Sample:
    """A sample's name and labels."""
    return name, frozenset(labels.items())


def of(name: str, uid: str = "u1", /, **labels: str) -> Sample:
    """The same, for an object."""
    return at(name, name="demo", namespace="team", uid=uid, **labels)


def samples(found: ControllerFigures | None) -> dict[Sample, float]:
    """All samples but those of the process."""
    text = metrics_text(lambda: found)().decode()
    return {
        at(sample.name, **sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.startswith("process_")
    }


def test_a_cluster_has_kuberays_metrics() -> None:
    found = samples(figures(clusters=(cluster(conditions=[provisioned("True")]),)))
    assert found == {
        of("kuberay_cluster_info", owner_kind="RayJob"): 1,
        of("kuberay_cluster_condition_provisioned", condition="true"): 1,
        of("kuberay_cluster_provisioned_duration_seconds"): 42,
    }


@pytest.mark.parametrize("status", [{}, {"conditions": None}, {"conditions": [provisioned("False")]}])
def test_a_cluster_that_is_not_up_has_no_duration(status: dict[str, Any]) -> None:
    found = samples(figures(clusters=(cluster(**status),)))
    assert of("kuberay_cluster_condition_provisioned", condition="false") in found
    assert not [name for name, _ in found if "duration" in name]


def attempt(ended: str, retries: str) -> Sample:
    return of("kuberay_job_execution_duration_seconds", "u2", job_deployment_status=ended, retry_count=retries)


def test_a_job_has_its_state_and_how_long_its_attempts_took() -> None:
    jobs = KnownJobs()
    jobs.seen("team", "demo", "u2", "Running").attempts["Retrying", 0] = 12.5
    jobs.seen("team", "demo", "u2", "Complete")
    assert samples(figures(jobs=jobs)) == {
        of("kuberay_job_info", "u2"): 1,
        of("kuberay_job_deployment_status", "u2", deployment_status="Complete"): 1,
        attempt("Retrying", "0"): 12.5,
    }


def test_a_job_that_is_retried_without_end_does_not_fill_the_memory() -> None:
    jobs = KnownJobs()
    for retries in range(100):
        jobs.seen("team", "demo", "u2", "Retrying").ended("Retrying", retries, 1)
    told = [one for one in samples(figures(jobs=jobs)) if one[0] == "kuberay_job_execution_duration_seconds"]
    assert told == [attempt("Retrying", str(retries)) for retries in range(80, 100)]


def test_a_job_that_is_gone_or_another_one_leaves_nothing_behind() -> None:
    jobs = KnownJobs()
    jobs.seen("team", "demo", "u2", "Failed").attempts["Failed", 0] = 1
    jobs.seen("team", "demo", "u3", "Running")
    assert attempt("Failed", "0") not in samples(figures(jobs=jobs))
    jobs.gone("team/demo")
    assert samples(figures(jobs=jobs)) == {}


def test_gangs_are_counted_by_phase_and_by_why_they_wait() -> None:
    waits = '{"code": "QueueQuota", "message": "full"}'
    gangs = (gang("Running"), gang("Pending", waits), gang("Pending", waits), gang("Inqueue", "plain text", None))
    assert samples(figures(gangs=gangs)) == {
        at("muster_gangs", queue="default", phase="Inqueue"): 1,
        at("muster_gangs", queue="research", phase="Pending"): 2,
        at("muster_gangs", queue="research", phase="Running"): 1,
        at("muster_gangs_waiting", queue="research", reason="QueueQuota"): 2,
    }


def test_a_process_that_stands_by_has_none_but_its_own() -> None:
    assert samples(None) == {}
    assert b"process_resident_memory_bytes" in metrics_text(lambda: None)()


class Slow:
    """Takes two seconds for each look, and fails at the second one."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._looks = 0
        self.done = asyncio.Event()

    async def reconcile(self, key: str) -> Requeue | None:
        self._looks += 1
        if self._looks == 3:
            self.done.set()
        await self._clock.advance(2)
        if self._looks == 2:
            raise ValueError("no")
        return None


async def test_looks_are_counted_and_timed() -> None:
    clock = FakeClock()
    queue, slow = WorkQueue(clock=clock), Slow(clock)
    runner = Runner("RayJob", slow, queue, slots=Slots(1), clock=clock)
    for key in ("a", "b", "c"):
        queue.add(key)
    task = asyncio.create_task(runner.run())
    await asyncio.wait_for(slow.done.wait(), 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    found = samples(ControllerFigures((), (), (), [runner]))
    assert found[at("muster_reconcile_seconds_count", controller="RayJob")] >= 2
    assert found[at("muster_reconcile_seconds_sum", controller="RayJob")] >= 4
    assert found[at("muster_reconcile_failures_total", controller="RayJob")] >= 1
    assert at("muster_workqueue_depth", controller="RayJob") in found


async def test_they_are_served_for_prometheus() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/metrics"
    async with serve_metrics(port, lambda: b"muster 1\n"), aiohttp.ClientSession() as client, client.get(url) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        assert await answer.read() == b"muster 1\n"


def test_every_metric_is_documented_and_no_other() -> None:
    text = metrics_text(lambda: figures())().decode()
    made = {family.name for family in text_string_to_metric_families(text) if not family.name.startswith("process_")}
    documented = set(re.findall(r"^\| `((?:kuberay|muster)_\w+)", DOCUMENT.read_text(), re.MULTILINE))
    assert documented == {re.sub("^(muster_reconcile_failures)$", r"\1_total", name) for name in made}
