"""What is deleted after the end of a RayJob, and when. Pure.

Every end has a defined clean-up. Rules that name the end exactly apply. An end that no rule names (a deadline, a
submission that failed, a job that somebody stopped: Ray then says neither SUCCEEDED nor FAILED) is a failure, and the
rules for failures apply; else a cluster would stay for ever because of how a job failed (kuberay#5184). Where nothing
applies at all the cluster is kept, or goes after the time that the operator's administrator has set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from muster.api.rayjob import (
    DeletionCondition,
    DeletionRule,
    DeletionStrategy,
    JobStatus,
    RayJobSpec,
)
from muster.controllers.deletion_defaults import DeletionDefaults


class Policy(IntEnum):
    """What is deleted; what deletes more is larger."""

    NONE = 1
    WORKERS = 2
    CLUSTER = 3
    SELF = 4


_NAMED = {
    "DeleteNone": Policy.NONE,
    "DeleteWorkers": Policy.WORKERS,
    "DeleteCluster": Policy.CLUSTER,
    "DeleteSelf": Policy.SELF,
}


@dataclass(frozen=True, slots=True)
class Deletion:
    """Delete `policy`, `after` seconds from the end."""

    policy: Policy
    after: float


@dataclass(frozen=True, slots=True)
class DeletionPlan:
    """All that is to be deleted; `unruled` where the rules that there are say nothing about this end."""

    deletions: tuple[Deletion, ...] = ()
    unruled: bool = False


def deletion_plan(spec: RayJobSpec, state: str, ray_status: JobStatus, defaults: DeletionDefaults) -> DeletionPlan:
    """The plan for a job that ended so: `state` is Complete or Failed, `ray_status` Ray's last word."""
    ttl = float(spec.ttl_seconds_after_finished or 0)
    strategy = spec.deletion_strategy
    if strategy is not None and strategy.deletion_rules is not None:
        found = _matching(strategy.deletion_rules, state, ray_status)
        return DeletionPlan(tuple(found)) if found else DeletionPlan(_default(defaults), unruled=True)
    if strategy is not None and (policy := _older_policy(strategy, ray_status)):
        return DeletionPlan((Deletion(policy, ttl),))
    if spec.shutdown_after_job_finishes:
        return DeletionPlan((Deletion(Policy.SELF if defaults.delete_jobs else Policy.CLUSTER, ttl),))
    # `false` is a word, too: keep it.
    return DeletionPlan(_default(defaults) if spec.shutdown_after_job_finishes is None else ())


def _matching(rules: Iterable[DeletionRule], state: str, ray_status: JobStatus) -> list[Deletion]:
    rules = list(rules)
    exact = [rule for rule in rules if _names(rule.condition, state, ray_status)]
    failed = ray_status is not JobStatus.SUCCEEDED
    found = exact or [rule for rule in rules if failed and rule.condition.job_status != JobStatus.SUCCEEDED]
    return [Deletion(_NAMED[rule.policy], float(rule.condition.ttl_seconds or 0)) for rule in found]


def _names(condition: DeletionCondition, state: str, ray_status: JobStatus) -> bool:
    if condition.job_deployment_status:
        return state == condition.job_deployment_status
    return ray_status == condition.job_status


def _older_policy(strategy: DeletionStrategy, ray_status: JobStatus) -> Policy | None:
    written = strategy.on_success if ray_status is JobStatus.SUCCEEDED else strategy.on_failure
    return _NAMED.get((written.policy if written is not None else None) or "")


def _default(defaults: DeletionDefaults) -> tuple[Deletion, ...]:
    return () if defaults.cluster_ttl is None else (Deletion(Policy.CLUSTER, defaults.cluster_ttl),)
