"""Events on a real API server: said once, counted by nobody, lost by no lost answer."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from muster.kube.client import ApiClient
from muster.kube.events import EventRecorder, ObjectReference
from muster.kube.resource import EVENTS, RAYJOBS
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubectl import run_kubectl
from tests.integration.fault_proxy import Answer, FaultProxy, LoseAnswer, matching
from tests.integration.ray_manifests import ray_job as ray_job_manifest


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[None]:
    """Run a recorder; at the end of the block everything has been posted."""
    task = asyncio.create_task(recorder.run())
    try:
        yield
        assert await recorder.flush(20)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def ray_job(namespace: str | None, uid: str = "u1") -> ObjectReference:
    return ObjectReference("ray.io/v1", "RayJob", namespace, "demo-job", uid)


async def posted(api: ApiClient, namespace: str) -> list[dict[str, Any]]:
    events = await api.list(EVENTS, namespace)
    return sorted(events, key=lambda event: str(event["eventTime"]))


async def no_pause(_: float) -> None:
    return


async def test_an_event_arrives_with_all_its_parts(api: ApiClient, namespace: str) -> None:
    recorder = EventRecorder(api, "muster", instance="muster-0")
    async with running(recorder):
        recorder.event(ray_job(namespace), "Warning", "InvalidRayJobSpec", "spec.x: not a number", "Validate")
    (event,) = await posted(api, namespace)
    expected = {
        "type": "Warning",
        "reason": "InvalidRayJobSpec",
        "note": "spec.x: not a number",
        "action": "Validate",
        "reportingController": "muster",
        "reportingInstance": "muster-0",
    }
    assert {key: event[key] for key in expected} == expected
    assert event["regarding"] == {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "namespace": namespace,
        "name": "demo-job",
        "uid": "u1",
    }


async def test_kubectl_describes_the_events_of_an_object_in_the_order_in_which_they_came(
    control_plane: ControlPlane, api: ApiClient, namespace: str
) -> None:
    job = await api.create(RAYJOBS, namespace, ray_job_manifest("demo-job"))
    recorder = EventRecorder(api, "muster")
    async with running(recorder):
        for number in range(30):
            recorder.event(ray_job(namespace, job["metadata"]["uid"]), "Normal", "News", f"number {number}", "Act")
    described = await asyncio.to_thread(
        run_kubectl, control_plane, "describe", "rayjob", "demo-job", "--namespace", namespace
    )
    assert re.findall(r"number (\d+)", described.stdout) == [str(number) for number in range(30)]


async def test_the_same_news_is_said_once_and_another_change_again(api: ApiClient, namespace: str) -> None:
    moments = (datetime(2026, 1, 1, second=second, tzinfo=UTC) for second in itertools.count())
    recorder = EventRecorder(api, "muster", clock=lambda: next(moments))
    async with running(recorder):
        for _ in range(3):
            recorder.event(ray_job(namespace), "Normal", "Suspended", "by its spec", "Suspend", change="2")
            recorder.event(ray_job(namespace), "Normal", "Queued", "waits for quota", "Schedule")
        recorder.event(ray_job(namespace), "Normal", "Queued", "waits for room", "Schedule")
        recorder.event(ray_job(namespace), "Normal", "Suspended", "by its spec", "Suspend", change="4")
        recorder.event(ray_job(namespace, uid="u2"), "Normal", "Queued", "waits for room", "Schedule")
    assert [event["note"] for event in await posted(api, namespace)] == [
        "by its spec",
        "waits for quota",
        "waits for room",
        "by its spec",
        "waits for room",
    ]


async def test_an_event_whose_answer_is_lost_is_posted_again_and_is_there_once(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    proxy.inject(LoseAnswer(), when=matching("POST", "/events$"))
    proxy.inject(Answer(429, "TooManyRequests", retry_after=1), when=matching("POST", "/events$"))
    recorder = EventRecorder(proxied, "muster", sleep=no_pause)
    async with running(recorder):
        recorder.event(ray_job(namespace), "Normal", "Started", "it runs", "Start")
    assert len(await posted(api, namespace)) == 1
    assert len(proxy.requests) == 3


async def test_an_event_that_is_refused_holds_up_no_other(
    proxied: ApiClient, proxy: FaultProxy, api: ApiClient, namespace: str
) -> None:
    proxy.inject(Answer(403, "Forbidden"), when=matching("POST", "/events$"))
    proxy.inject(Answer(500, "InternalError"), when=lambda request: request.body["reason"] == "Second", times=None)
    recorder = EventRecorder(proxied, "muster", sleep=no_pause)
    async with running(recorder):
        for reason in ("First", "Second", "Third"):
            recorder.event(ray_job(namespace), "Normal", reason, "news", "Act")
    assert [event["reason"] for event in await posted(api, namespace)] == ["Third"]


async def test_long_texts_and_names_are_cut_to_what_the_server_takes(api: ApiClient, namespace: str) -> None:
    about = ObjectReference("ray.io/v1", "RayJob", namespace, "n" * 253, "u1")
    recorder = EventRecorder(api, "muster")
    async with running(recorder):
        recorder.event(about, "Normal", "R" * 200, "é" * 1000, "A" * 200)
    (event,) = await posted(api, namespace)
    assert event["note"] == "é" * 512


async def test_news_of_an_object_without_a_namespace_goes_to_the_default_one(api: ApiClient, namespace: str) -> None:
    queue = ObjectReference("scheduling.volcano.sh/v1beta1", "Queue", None, f"q-{namespace}", "u1")
    recorder = EventRecorder(api, "muster")
    async with running(recorder):
        recorder.event(queue, "Normal", "Closed", "by its administrator", "Close")
    found = [event for event in await posted(api, "default") if event["regarding"]["name"] == queue.name]
    assert len(found) == 1
