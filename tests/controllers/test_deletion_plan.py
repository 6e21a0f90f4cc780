"""What is deleted after the end of a RayJob, and when."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api.rayjob import JobStatus, RayJobSpec
from muster.controllers.deletion_defaults import DeletionDefaults
from muster.controllers.rayjob.deletion_plan import DeletionPlan, deletion_plan

NOTHING = DeletionDefaults()
AN_HOUR = DeletionDefaults(cluster_ttl=3600)


def rule(policy: str, ttl: int = 0, **condition: str) -> dict[str, Any]:
    return {"policy": policy, "condition": {"ttlSeconds": ttl, **condition}}


RULES = {
    "deletionStrategy": {
        "deletionRules": [
            rule("DeleteCluster", 10, jobStatus="SUCCEEDED"),
            rule("DeleteWorkers", 20, jobStatus="FAILED"),
            rule("DeleteCluster", 30, jobStatus="FAILED"),
        ]
    }
}
BY_STATE = {"deletionStrategy": {"deletionRules": [rule("DeleteSelf", 5, jobDeploymentStatus="Failed")]}}
ONLY_SUCCESS = {"deletionStrategy": {"deletionRules": [rule("DeleteCluster", jobStatus="SUCCEEDED")]}}
OLDER = {"deletionStrategy": {"onSuccess": {"policy": "DeleteNone"}, "onFailure": {"policy": "DeleteWorkers"}}}


def plan(spec: dict[str, Any], ray: str, defaults: DeletionDefaults = NOTHING) -> DeletionPlan:
    state = "Complete" if ray in ("SUCCEEDED", "STOPPED") else "Failed"
    return deletion_plan(RayJobSpec.parse(spec), state, JobStatus(ray), defaults)


def told(found: DeletionPlan) -> list[tuple[str, float]]:
    return [(one.policy.name, one.after) for one in found.deletions]


@pytest.mark.parametrize(
    ("spec", "ray", "expected"),
    [
        pytest.param(RULES, "SUCCEEDED", [("CLUSTER", 10)], id="success"),
        pytest.param(RULES, "FAILED", [("WORKERS", 20), ("CLUSTER", 30)], id="failure in stages"),
        pytest.param(RULES, "RUNNING", [("WORKERS", 20), ("CLUSTER", 30)], id="a deadline is a failure (kuberay#5184)"),
        pytest.param(RULES, "", [("WORKERS", 20), ("CLUSTER", 30)], id="so is a submission that failed"),
        pytest.param(RULES, "STOPPED", [("WORKERS", 20), ("CLUSTER", 30)], id="and a job that somebody stopped"),
        pytest.param(BY_STATE, "FAILED", [("SELF", 5)], id="by the state"),
        pytest.param(BY_STATE, "", [("SELF", 5)], id="by the state, without a word of Ray's"),
        pytest.param(BY_STATE, "STOPPED", [("SELF", 5)], id="stopped, by the state"),
        pytest.param(BY_STATE, "SUCCEEDED", [], id="no rule for success"),
        pytest.param(ONLY_SUCCESS, "FAILED", [], id="no rule for failure"),
        pytest.param(OLDER, "SUCCEEDED", [("NONE", 0)], id="the older form: success"),
        pytest.param(OLDER, "FAILED", [("WORKERS", 0)], id="the older form: failure"),
        pytest.param(OLDER, "", [("WORKERS", 0)], id="the older form: any failure"),
        pytest.param(
            {**OLDER, "shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 7},
            "FAILED",
            [("WORKERS", 7)],
            id="the older form waits for the time to live",
        ),
        pytest.param({}, "SUCCEEDED", [], id="nothing said"),
        pytest.param(
            {"shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 7}, "", [("CLUSTER", 7)], id="shut down"
        ),
    ],
)
def test_every_end_has_its_deletions(spec: dict[str, Any], ray: str, expected: list[tuple[str, float]]) -> None:
    assert told(plan(spec, ray)) == expected


@pytest.mark.parametrize(
    ("spec", "ray", "expected", "unruled"),
    [
        pytest.param({}, "SUCCEEDED", [("CLUSTER", 3600)], False, id="nothing said"),
        pytest.param({"shutdownAfterJobFinishes": False}, "SUCCEEDED", [], False, id="false is a word"),
        pytest.param(ONLY_SUCCESS, "FAILED", [("CLUSTER", 3600)], True, id="no rule for this end"),
        pytest.param(ONLY_SUCCESS, "SUCCEEDED", [("CLUSTER", 0)], False, id="a rule"),
        pytest.param(OLDER, "SUCCEEDED", [("NONE", 0)], False, id="to delete nothing is a rule"),
    ],
)
def test_the_administrators_time_counts_where_nobody_has_said_anything(
    spec: dict[str, Any], ray: str, expected: list[tuple[str, float]], unruled: bool
) -> None:
    found = plan(spec, ray, AN_HOUR)
    assert (told(found), found.unruled) == (expected, unruled)


def test_the_administrator_may_have_the_job_deleted_in_place_of_its_cluster() -> None:
    spec = {"shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 7}
    assert told(plan(spec, "SUCCEEDED", DeletionDefaults(delete_jobs=True))) == [("SELF", 7)]
    assert told(plan({}, "SUCCEEDED", DeletionDefaults(delete_jobs=True))) == []
