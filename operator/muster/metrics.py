"""The metrics of the operator, for Prometheus: KubeRay's under its names, and Muster's own (docs/metrics.md).

Nothing is kept up to date for them but a few sums: they are made from what the controllers know when somebody asks. A
process that only stands by for a Lease has none but its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from muster.controllers.clock import seconds_of
from muster.controllers.context import ObservedRayCluster
from muster.controllers.figures import ControllerFigures
from muster.controllers.job_figures import JobFigures
from muster.controllers.runner import Runner
from muster.http_server import serve
from muster.kube.objects import PodGroup
from muster.ray import labels
from muster.ray.cluster_conditions import PROVISIONED

Source = Callable[[], ControllerFigures | None]

_REASON = "muster.dev/reason"
_OBJECT = ("name", "namespace", "uid")


class ControllerCollector(Collector):
    """Makes the metrics of the controllers; `source` tells what they know, None while they don't work."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        """All families, as of now."""
        figures = self._source()
        if figures is None:
            return
        yield from _of_clusters(figures.ray_clusters)
        yield from _of_jobs(figures.ray_jobs)
        yield from _of_gangs(figures.pod_groups)
        yield from _of_runners(figures.runners)


def metrics_text(source: Source) -> Callable[[], bytes]:
    """A function that writes all metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(ControllerCollector(source))
    return lambda: generate_latest(registry)


def serve_metrics(port: int, text: Callable[[], bytes]) -> AbstractAsyncContextManager[None]:
    """Answers /metrics while the block runs; on no port where `port` is 0. Raises OSError when the port is taken."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return serve(port, {"/metrics": metrics})


def _of_clusters(clusters: Iterable[ObservedRayCluster]) -> Iterator[Metric]:
    info = GaugeMetricFamily("kuberay_cluster_info", "RayClusters that exist", labels=[*_OBJECT, "owner_kind"])
    provisioned = GaugeMetricFamily(
        "kuberay_cluster_condition_provisioned",
        "Whether all pods of a RayCluster were ready once",
        labels=[*_OBJECT, "condition"],
    )
    duration = GaugeMetricFamily(
        "kuberay_cluster_provisioned_duration_seconds",
        "Seconds from the creation of a RayCluster until all its pods were ready",
        labels=_OBJECT,
    )
    for cluster in clusters:
        meta = cluster.metadata
        who = [meta.name, meta.namespace or "", meta.uid]
        info.add_metric([*who, meta.labels.get(labels.ORIGINATED_FROM_KIND) or "None"], 1)
        condition = _provisioned(cluster)
        holds = condition.get("status") == "True"
        provisioned.add_metric([*who, str(holds).lower()], 1)
        since, made = seconds_of(condition.get("lastTransitionTime")), seconds_of(meta.creation_timestamp)
        if holds and since is not None and made is not None:
            duration.add_metric(who, max(0.0, since - made))
    yield from (info, provisioned, duration)


def _provisioned(cluster: ObservedRayCluster) -> Mapping[str, Any]:
    conditions = cluster.status.get("conditions") or []
    return next((one for one in conditions if isinstance(one, Mapping) and one.get("type") == PROVISIONED), {})


def _of_jobs(jobs: Iterable[JobFigures]) -> Iterator[Metric]:
    info = GaugeMetricFamily("kuberay_job_info", "RayJobs that exist", labels=_OBJECT)
    state = GaugeMetricFamily(
        "kuberay_job_deployment_status", "The state of a RayJob", labels=[*_OBJECT, "deployment_status"]
    )
    duration = GaugeMetricFamily(
        "kuberay_job_execution_duration_seconds",
        "Seconds that an attempt of a RayJob took until it ended",
        labels=[*_OBJECT, "job_deployment_status", "retry_count"],
    )
    for job in jobs:
        who = [job.name, job.namespace, job.uid]
        info.add_metric(who, 1)
        state.add_metric([*who, job.state], 1)
        for (ended, retries), seconds in job.attempts.items():
            duration.add_metric([*who, ended, str(retries)], seconds)
    yield from (info, state, duration)


def _of_gangs(pod_groups: Iterable[PodGroup]) -> Iterator[Metric]:
    phases: Counter[tuple[str, str]] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    for group in pod_groups:
        queue = group.spec.queue or "default"
        phases[queue, group.status.phase or "Pending"] += 1
        if (code := _reason(group)) is not None:
            reasons[queue, code] += 1
    gangs = GaugeMetricFamily("muster_gangs", "PodGroups by queue and phase", labels=["queue", "phase"])
    waiting = GaugeMetricFamily(
        "muster_gangs_waiting", "PodGroups that wait, by queue and dominant reason", labels=["queue", "reason"]
    )
    for family, counted in ((gangs, phases), (waiting, reasons)):
        for names, count in sorted(counted.items()):
            family.add_metric(list(names), count)
    yield from (gangs, waiting)


def _reason(group: PodGroup) -> str | None:
    """The code of why the gang waits. Anybody may have written the annotation."""
    try:
        document = json.loads(group.metadata.annotations.get(_REASON) or "null")
    except (ValueError, RecursionError):
        return None
    code = document.get("code") if isinstance(document, dict) else None
    return code if isinstance(code, str) and len(code) <= 63 else None


def _of_runners(runners: Iterable[Runner]) -> Iterator[Metric]:
    depth = GaugeMetricFamily("muster_workqueue_depth", "Objects that wait for a look", labels=["controller"])
    looks = SummaryMetricFamily(
        "muster_reconcile_seconds", "Looks at objects, and how long they took", labels=["controller"]
    )
    failures = CounterMetricFamily(
        "muster_reconcile_failures", "Looks that failed and are tried again", labels=["controller"]
    )
    for runner in runners:
        depth.add_metric([runner.name], len(runner.queue))
        looks.add_metric([runner.name], runner.looks, runner.seconds)
        failures.add_metric([runner.name], runner.failures)
    yield from (depth, looks, failures)
