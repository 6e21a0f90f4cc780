"""Victims in bundles: what a gang can spare, and the rest of it, which goes whole or not at all.

A task is safe to take while its gang stays ready without it: above minMember, and above its role's minimum. The others
of the gang form one bundle, since without any one of them the gang computes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.scheduler.resources import Resources, total

if TYPE_CHECKING:
    from muster.scheduler.job import JobInfo
    from muster.scheduler.task import TaskInfo


@dataclass(slots=True)
class Bundle:
    """Tasks of one gang; `whole` ones are taken all or none. `costs` is what the cluster loses by it."""

    job: JobInfo
    tasks: list[TaskInfo]
    whole: bool
    costs: Resources = field(default_factory=Resources)

    @property
    def frees(self) -> Resources:
        """What it would give back."""
        return total(task.request for task in self.tasks)

    def worth(self, need: Resources) -> float:
        """What it gives of the need against what is lost; infinite when nothing is."""
        loss = _parts(self.costs, need)
        return _parts(self.frees.capped_by(need), need) / loss if loss else float("inf")

    @property
    def order(self) -> tuple[str, str]:
        """The last word."""
        return (self.job.key, self.tasks[0].uid)


def _parts(amount: Resources, need: Resources) -> float:
    return sum(amount.get(name) / need.get(name) for name in need.dimensions() if need.get(name) > 0)


def bundles_of(job: JobInfo, candidates: Iterable[TaskInfo]) -> list[Bundle]:
    """One gang's candidates, the least important first in each bundle; of equals who comes first."""
    tasks = sorted(candidates, key=lambda task: task.spec.priority)
    surplus = job.ready - job.min_member
    if surplus < 0:
        return [Bundle(job, tasks, whole=False)]
    roles = {role: job.placed_of(role) - least for role, least in job.role_minimums()}
    safe: list[TaskInfo] = []
    rest: list[TaskInfo] = []
    for task in tasks:
        if surplus > 0 and roles.get(task.role, 1) > 0 and not job.is_companion(task):
            surplus -= 1
            if task.role in roles:
                roles[task.role] -= 1
            safe.append(task)
        else:
            rest.append(task)
    everything = total(task.request for task in job.tasks.values() if task.status.charged)
    found = [Bundle(job, safe, whole=False), Bundle(job, rest, whole=True, costs=everything)]
    return [bundle for bundle in found if bundle.tasks]


def keep_allowed(bundles: Iterable[Bundle], allowed: Sequence[TaskInfo]) -> list[Bundle]:
    """What is left when only these may go: a whole bundle needs all of its tasks, the others shrink."""
    names = {task.uid for task in allowed}
    found = []
    for bundle in bundles:
        tasks = [task for task in bundle.tasks if task.uid in names]
        if tasks and (not bundle.whole or len(tasks) == len(bundle.tasks)):
            found.append(Bundle(bundle.job, tasks, bundle.whole, bundle.costs))
    return found
