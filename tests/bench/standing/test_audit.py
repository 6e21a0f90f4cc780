"""The writes of one account, by the audit log of a real API server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.account import USER, account_kubeconfig
from bench.api_client import ApiClient, RefusedError
from bench.standing.audit import AuditLog, without_leases
from bench.standing.cluster import control_plane
from tests.integration.gang_objects import eventually

_NAMESPACES = "/api/v1/namespaces"


@pytest.mark.control_plane
async def test_all_writes_of_the_account_are_counted_and_nobody_elses(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path, USER)
    with control_plane(kwok=False, flags=audit.flags) as plane:
        plane.api.create(_NAMESPACES, {"metadata": {"name": "others"}})
        async with ApiClient(account_kubeconfig(plane)) as client:
            await client.create(_NAMESPACES, {"metadata": {"name": "own"}})
            with pytest.raises(RefusedError, match="already exists"):
                await client.create(_NAMESPACES, {"metadata": {"name": "own"}})
            await client.merge(f"{_NAMESPACES}/own/status", {"metadata": {"annotations": {"written": "yes"}}})
            await client.create(f"{_NAMESPACES}/own/configmaps", {"metadata": {"name": "gone"}})
            await client.delete(f"{_NAMESPACES}/own/configmaps/gone")
            await client.list(f"{_NAMESPACES}/own/configmaps")
            expected = {
                "POST namespaces": 2,
                "PATCH namespaces/status": 1,
                "POST configmaps": 1,
                "DELETE configmaps": 1,
            }
            await eventually(lambda: audit.writes().total() >= 5, "all writes are in the log", 20.0)
            assert audit.writes() == expected


def test_before_the_first_write_there_is_none(tmp_path: Path) -> None:
    assert not AuditLog(tmp_path, USER).writes()


def test_a_line_that_is_still_being_written_is_not_counted(tmp_path: Path) -> None:
    line = json.dumps({"verb": "update", "objectRef": {"resource": "leases", "name": "scheduler"}})
    (tmp_path / "audit.log").write_text(f"{line}\n{line[:30]}")
    assert AuditLog(tmp_path, USER).writes() == {"PUT leases": 1}


def test_what_is_no_lease_is_left_without_the_leases() -> None:
    assert without_leases({"PUT leases": 7, "POST leases": 1, "PATCH pods/status": 2}) == {"PATCH pods/status": 2}
