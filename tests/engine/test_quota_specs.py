from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.engine.amounts import TranslationError
from muster.engine.quota_specs import resource_quota_spec
from muster.kube.policy_objects import ResourceQuota
from muster.scheduler.specs import ResourceQuotaSpec

MEBI = 1024**2


def quota(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> ResourceQuota:
    manifest = {"metadata": {"name": "q", "namespace": "ns"}, "spec": spec or {}, "status": status or {}}
    return msgspec.convert(manifest, type=ResourceQuota)


def test_a_quota_limits_by_its_own_names_in_the_units_of_what_they_count() -> None:
    hard = {"cpu": "2", "requests.memory": "1Mi", "pods": "5", "count/pods": "6", "requests.nvidia.com/gpu": "1"}
    assert resource_quota_spec(quota(status={"hard": hard, "used": {"cpu": "500m"}})) == ResourceQuotaSpec(
        "ns",
        "q",
        {"cpu": 2000, "requests.memory": MEBI, "pods": 5, "count/pods": 6, "requests.nvidia.com/gpu": 1000},
        {"cpu": 500},
    )


def test_until_there_is_a_status_what_the_spec_says_holds() -> None:
    assert resource_quota_spec(quota({"hard": {"cpu": "2"}})) == ResourceQuotaSpec("ns", "q", {"cpu": 2000})


@pytest.mark.parametrize(
    "scoped", [{"scopes": ["BestEffort"]}, {"scopeSelector": {"matchExpressions": []}, "scopes": ["x"]}]
)
def test_a_quota_for_some_pods_only_is_passed_over(scoped: dict[str, Any]) -> None:
    assert resource_quota_spec(quota({"hard": {"cpu": "2"}, **scoped})) is None


def test_what_is_no_quantity_is_named() -> None:
    with pytest.raises(TranslationError, match=r"status\.hard\[cpu\]"):
        resource_quota_spec(quota(status={"hard": {"cpu": "many"}}))
