"""What counts as a stray is the API server's word: neither informer is believed to be ahead of the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from muster.controllers.context import ObservedRayCluster
from muster.controllers.rayjob.look import Look
from muster.controllers.rayjob.strays import delete_strays, left_behind, name_stray
from muster.kube.errors import Conflict
from muster.kube.objects import ObjectMeta, OwnerReference
from tests.controllers.fake_clock import FakeClock

NAMESPACE = "team"


def cluster(name: str, owner: str = "u", *, leaving: bool = False) -> ObservedRayCluster:
    references = [OwnerReference(api_version="ray.io/v1", kind="RayJob", name="demo", uid=owner, controller=True)]
    leaves = "2026-01-01T00:00:00Z" if leaving else None
    meta = ObjectMeta(name=name, namespace=NAMESPACE, uid=name, owner_references=references, deletion_timestamp=leaves)
    return ObservedRayCluster(metadata=meta)


class _Stored:
    """A job whose status names `named`; the clusters that an informer has `seen`, and what the API server has."""

    def __init__(
        self, *seen: ObservedRayCluster, there: tuple[ObservedRayCluster, ...] | None = None, changed: bool = False
    ) -> None:
        self.there = {one.metadata.name: one for one in (seen if there is None else there)}
        self.deleted: list[str] = []
        self.written: dict[str, Any] = {}
        self._changed = changed
        clusters = SimpleNamespace(owned_by=lambda *_: list(seen), read=self._read, delete=self._delete)
        jobs = SimpleNamespace(get=lambda *_: None)
        self._look = SimpleNamespace(
            job=SimpleNamespace(metadata=SimpleNamespace(name="demo", namespace=NAMESPACE, uid="u")),
            status=SimpleNamespace(ray_cluster_name="demo-new"),
            key=f"{NAMESPACE}/demo",
            hindered=False,
            context=SimpleNamespace(ray_clusters=clusters, jobs=jobs, clock=FakeClock(), setbacks_in_passing={}),
            confirm=self._confirm,
            write=self._write,
            say=lambda *_, **__: None,
            telling=Look.telling.__get__(self),
        )

    async def _read(self, _: str, name: str) -> ObservedRayCluster | None:
        return self.there.get(name)

    async def _delete(self, one: ObservedRayCluster, **_: Any) -> bool:
        self.deleted.append(one.metadata.name)
        return True

    async def _confirm(self) -> None:
        if self._changed:
            raise Conflict(409, "Conflict", "it has changed")

    async def _write(self, **changes: Any) -> None:
        await self._confirm()
        self.written |= changes

    def look(self, named: str | None = "demo-new") -> Look:
        self._look.status.ray_cluster_name = named
        return cast(Look, self._look)


async def test_what_the_status_does_not_name_is_deleted_once() -> None:
    stored = _Stored(cluster("demo-old"), cluster("demo-new"), cluster("demo-leaving", leaving=True))
    await delete_strays(stored.look())
    assert stored.deleted == ["demo-old"]


async def test_a_cluster_that_a_newer_status_may_name_is_not_deleted() -> None:
    stored = _Stored(cluster("demo-newer"), cluster("demo-new"), changed=True)
    look = stored.look()
    await delete_strays(look)
    assert look.hindered, "it is looked at again"
    with pytest.raises(Conflict):
        await name_stray(stored.look())
    assert stored.deleted == []


@pytest.mark.parametrize("there", [(), (cluster("demo-old", owner="another"),)])
async def test_a_cluster_that_only_an_informer_has_is_no_stray(there: tuple[ObservedRayCluster, ...]) -> None:
    stored = _Stored(cluster("demo-old"), there=there)
    await delete_strays(stored.look())
    assert not await name_stray(stored.look())
    assert not await left_behind(stored.look(named=None))
    assert (stored.deleted, stored.written) == ([], {})


async def test_a_cluster_that_is_leaving_is_waited_for_by_its_name() -> None:
    stored = _Stored(cluster("demo-leaving", leaving=True))
    assert await left_behind(stored.look(named=None))
    assert await name_stray(stored.look(named=None))
    assert stored.written == {"ray_cluster_name": "demo-leaving"}
