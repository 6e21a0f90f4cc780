"""Where a look at a custom resource starts from: the informer's state, unless something newer is known to exist."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.controllers.context import ObservedRayJob
from muster.controllers.primaries import Primaries
from muster.kube.errors import ApiError, Conflict, NotFound, ServerError, Undecodable, Unreachable
from muster.kube.informer import Informer
from muster.kube.resource import RAYJOBS

KEY = "default/demo"
CONFLICT = Conflict(409, "Conflict", "the object has been modified")
GONE = NotFound(404, "NotFound", "no such job")


def job(version: int, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "demo", "namespace": "default", "uid": "u", "resourceVersion": str(version)}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": metadata, "spec": {"entrypoint": "true", **spec}}


class Server:
    """An API server with at most one RayJob, which may refuse the next write."""

    def __init__(self, present: dict[str, Any] | None) -> None:
        self.present, self.reads = present, 0
        self.refusal: ApiError | None = None
        self.written: list[dict[str, Any]] = []

    async def get(self, *_: Any) -> dict[str, Any]:
        self.reads += 1
        if self.refusal is not None:
            raise self.refusal
        if self.present is None:
            raise GONE
        return self.present

    async def patch(self, *_: Any, subresource: str | None) -> dict[str, Any]:
        self.written.append(_[-1])
        if self.refusal is not None:
            raise self.refusal
        assert self.present is not None
        version = int(self.present["metadata"]["resourceVersion"]) + 1
        self.present = {**self.present, **job(version), "status": {"jobStatus": subresource}}
        return self.present

    async def delete(self, *_: Any, **__: Any) -> None:
        if self.refusal is not None:
            raise self.refusal


class Kept:
    """The primaries of a server, and the informer behind them, which learns only what a test tells it."""

    def __init__(self, seen: dict[str, Any] | None, present: dict[str, Any] | None) -> None:
        self.server = Server(present)
        self.informer: Informer[ObservedRayJob] = Informer(self.server, RAYJOBS, ObservedRayJob)  # type: ignore[arg-type]
        if seen is not None:
            self.sees(seen)
        self.primaries = Primaries(self.server, RAYJOBS, ObservedRayJob, self.informer)  # type: ignore[arg-type]

    def sees(self, raw: dict[str, Any]) -> None:
        self.informer.record(msgspec.convert(raw, ObservedRayJob))


async def test_a_look_costs_the_api_server_nothing() -> None:
    kept = Kept(job(7), job(7))
    assert await kept.primaries.read(KEY) == job(7)
    assert kept.server.reads == 0


async def test_that_there_is_none_is_the_api_servers_word() -> None:
    kept = Kept(None, job(7))
    assert await kept.primaries.read(KEY) == job(7)
    assert await kept.primaries.read(KEY) == job(7)
    assert kept.server.reads == 1, "its answer is the informer's from then on"
    assert await Kept(None, None).primaries.read(KEY) is None


@pytest.mark.parametrize(("told", "reads"), [("9", 1), ("7", 0), ("6", 0), ("", 0)])
async def test_a_version_that_another_watch_has_seen_is_not_passed_over(told: str, reads: int) -> None:
    kept = Kept(job(7), job(9))
    kept.primaries.told_of(KEY, told)
    raw = await kept.primaries.read(KEY)
    assert kept.server.reads == reads
    assert raw == (job(9) if reads else job(7))


async def test_the_end_that_another_watch_has_seen_is_not_passed_over() -> None:
    kept = Kept(job(7), None)
    kept.primaries.told_of(KEY, "9")
    assert await kept.primaries.read(KEY) is None


async def test_our_own_writes_are_no_news() -> None:
    kept = Kept(job(7), job(7))
    assert kept.primaries.told_of(KEY, "7"), "nothing is known of who wrote it"
    await kept.primaries.patch(job(7), {})
    assert [kept.primaries.told_of(KEY, version) for version in ("7", "8", "9", "")] == [False, False, True, True]
    kept.server.present = None
    assert await kept.primaries.read(KEY) is None
    assert kept.primaries.told_of(KEY, "8"), "what is gone is forgotten"


async def test_what_the_informer_has_caught_up_with_is_not_asked_for() -> None:
    kept = Kept(job(7), job(9))
    kept.primaries.told_of(KEY, "9")
    kept.sees(job(9))
    assert await kept.primaries.read(KEY) == job(9)
    assert kept.server.reads == 0


async def test_a_read_that_fails_is_tried_again_by_the_next_look() -> None:
    kept = Kept(job(7), job(9))
    kept.primaries.told_of(KEY, "9")
    kept.server.refusal = Unreachable("no answer")
    with pytest.raises(Unreachable):
        await kept.primaries.read(KEY)
    kept.server.refusal = None
    assert await kept.primaries.read(KEY) == job(9)


async def test_a_write_names_its_version_and_is_where_the_next_look_starts_from() -> None:
    kept = Kept(job(7), job(7))
    patched = await kept.primaries.patch(job(7), {"metadata": {"finalizers": ["a"]}}, subresource="status")
    assert kept.server.written == [{"metadata": {"finalizers": ["a"], "resourceVersion": "7"}}]
    assert await kept.primaries.read(KEY) == patched == {**job(8), "status": {"jobStatus": "status"}}
    assert kept.server.reads == 0


@pytest.mark.parametrize("refusal", [CONFLICT, GONE], ids=["changed since", "gone"])
@pytest.mark.parametrize("act", ["patch", "delete"])
async def test_after_a_refusal_the_next_look_does_not_believe_the_informer(act: str, refusal: ApiError) -> None:
    kept = Kept(job(7), job(9))
    kept.server.refusal = refusal
    with pytest.raises(type(refusal)):
        await (kept.primaries.patch(job(7), {}) if act == "patch" else kept.primaries.delete(job(7)))
    kept.server.refusal = None
    assert await kept.primaries.read(KEY) == job(9)
    assert kept.server.reads == 1


async def test_an_object_of_the_wrong_shape_is_read_as_it_is_stored() -> None:
    malformed = {**job(9), "spec": ["no", "mapping"]}
    kept = Kept(None, malformed)
    assert await kept.primaries.read(KEY) == malformed
    assert await kept.primaries.read(KEY) == malformed
    assert kept.server.reads == 2


@pytest.mark.parametrize(
    "trouble",
    [Unreachable("the connection was lost"), ServerError(500, "Internal", "time-out of etcd"), Undecodable("no JSON")],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("act", ["patch", "delete"])
async def test_a_write_that_may_have_landed_is_asked_about(act: str, trouble: ApiError) -> None:
    kept = Kept(job(7), job(8, landed=True))
    kept.server.refusal = trouble
    with pytest.raises(type(trouble)):
        await (kept.primaries.patch(job(7), {}) if act == "patch" else kept.primaries.delete(job(7)))
    kept.server.refusal = None
    assert await kept.primaries.read(KEY) == job(8, landed=True)


async def test_what_the_api_server_has_not_any_more_does_not_come_back_from_an_informer_that_lags() -> None:
    kept = Kept(job(7), None)
    kept.primaries.told_of(KEY, "9")
    assert await kept.primaries.read(KEY) is None
    assert await kept.primaries.read(KEY) is None, "the informer has version 7 still"
    kept.server.present = job(12)
    kept.sees(job(12))
    reads = kept.server.reads
    assert await kept.primaries.read(KEY) == job(12), "another one of the same name"
    assert kept.server.reads == reads


async def test_versions_that_begin_again_below_our_writes_are_news() -> None:
    """The API server's store was restored from a backup, and the informer has found out."""
    kept = Kept(job(7), job(7))
    await kept.primaries.patch(job(7), {})
    assert not kept.primaries.told_of(KEY, "8")
    kept.informer = kept.primaries._informer = Informer(kept.server, RAYJOBS, ObservedRayJob)  # type: ignore[arg-type]
    kept.sees(job(3))
    assert kept.primaries.told_of(KEY, "3")
    assert kept.primaries.told_of(KEY, "4")
