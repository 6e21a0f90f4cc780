"""`spec.deletionStrategy`: what is deleted after the end, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from muster.api.errors import FieldProblem
from muster.api.rayjob import DELETION_POLICIES, DeletionCondition, DeletionPolicy, DeletionRule, RayJob
from muster.ray.selection import runs_elsewhere
from muster.ray.validation.view import Problems

_PATH = "spec.deletionStrategy"
_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")
"""What is deleted later includes what is deleted before."""
_MOST_RULES = 100
"""Each is looked at in the light of all others, and the operator does nothing else meanwhile."""


def deletion_strategy(job: RayJob) -> Problems:
    """One of the two forms, complete."""
    strategy = job.spec.deletion_strategy
    if strategy is None:
        return
    older = strategy.on_success is not None or strategy.on_failure is not None
    if older and strategy.deletion_rules is not None:
        yield FieldProblem(
            _PATH, "onSuccess and onFailure can't be combined with deletionRules; use deletionRules alone"
        )
    elif strategy.deletion_rules is not None:
        yield from _rules(job, strategy.deletion_rules)
    else:
        yield from _older_form(job, strategy.on_success, strategy.on_failure)


def _older_form(job: RayJob, success: DeletionPolicy | None, failure: DeletionPolicy | None) -> Problems:
    for field, written in (("onSuccess", success), ("onFailure", failure)):
        path, policy = f"{_PATH}.{field}.policy", written.policy if written is not None else None
        if not policy:
            yield FieldProblem(path, "is required; set onSuccess and onFailure, or use deletionRules")
            continue
        yield from _policy(job, policy, path)
        if policy == "DeleteNone" and job.spec.shutdown_after_job_finishes:
            yield FieldProblem(path, "DeleteNone contradicts shutdownAfterJobFinishes: true; keep one of the two")


def _rules(job: RayJob, rules: list[DeletionRule]) -> Problems:
    if job.spec.shutdown_after_job_finishes:
        text = "can't be combined with shutdownAfterJobFinishes; leave that out"
        yield FieldProblem(f"{_PATH}.deletionRules", text)
    if not rules:
        yield FieldProblem(f"{_PATH}.deletionRules", "must have at least one rule")
    if len(rules) > _MOST_RULES:
        text = f"has {len(rules)} rules, at most {_MOST_RULES} can be told apart; leave out those that say the same"
        yield FieldProblem(f"{_PATH}.deletionRules", text)
        return
    seen: dict[tuple[str, str], int] = {}
    for index, rule in enumerate(rules):
        path = f"{_PATH}.deletionRules[{index}]"
        yield from _policy(job, rule.policy, f"{path}.policy")
        yield from _condition(rule.condition, f"{path}.condition")
        key = (rule.policy, _condition_name(rule.condition))
        if key in seen:
            text = f"repeats deletionRules[{seen[key]}]: {rule.policy} on {key[1]}; keep one"
            yield FieldProblem(path, text)
        seen.setdefault(key, index)
    yield from _times(rules)


def _policy(job: RayJob, policy: str, path: str) -> Problems:
    if policy not in DELETION_POLICIES:
        yield FieldProblem(path, f'must be one of {", ".join(DELETION_POLICIES)}, not "{policy}"')
    if runs_elsewhere(job) and policy in ("DeleteCluster", "DeleteWorkers"):
        yield FieldProblem(path, f"{policy} is not possible with clusterSelector: the cluster is not the job's own")
    spec = job.spec.ray_cluster_spec
    if policy == "DeleteWorkers" and spec is not None and spec.autoscaling:
        text = "DeleteWorkers is not possible with enableInTreeAutoscaling: the autoscaler would start them again"
        yield FieldProblem(path, text)


def _condition(condition: DeletionCondition, path: str) -> Problems:
    if bool(condition.job_status) == bool(condition.job_deployment_status):
        yield FieldProblem(path, "must have one of jobStatus and jobDeploymentStatus")
    if (condition.ttl_seconds or 0) < 0:
        yield FieldProblem(f"{path}.ttlSeconds", f"must not be negative, got {condition.ttl_seconds}")


def _times(rules: list[DeletionRule]) -> Problems:
    """Of one end the workers go first, then the cluster, then the RayJob."""
    for name in dict.fromkeys(_condition_name(rule.condition) for rule in rules):
        timed = {rule.policy: (index, rule) for index, rule in _of(rules, name)}
        staged = [timed[policy] for policy in _ORDER if policy in timed]
        for (_, earlier), (index, later) in pairwise(staged):
            if _ttl(later) < _ttl(earlier):
                text = (
                    f"{later.policy} comes after {_ttl(later)} s, before {earlier.policy} ({_ttl(earlier)} s); raise it"
                )
                yield FieldProblem(f"{_PATH}.deletionRules[{index}].condition.ttlSeconds", text)


def _of(rules: Iterable[DeletionRule], condition: str) -> Iterator[tuple[int, DeletionRule]]:
    return ((index, rule) for index, rule in enumerate(rules) if _condition_name(rule.condition) == condition)


def _condition_name(condition: DeletionCondition) -> str:
    if condition.job_status:
        return f"jobStatus {condition.job_status}"
    return f"jobDeploymentStatus {condition.job_deployment_status}"


def _ttl(rule: DeletionRule) -> int:
    return rule.condition.ttl_seconds or 0
