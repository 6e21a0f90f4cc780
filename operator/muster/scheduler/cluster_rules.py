"""What the cluster lays down for all gangs: queues, priority classes, quotas, disruption budgets, namespaces."""

from __future__ import annotations

from collections.abc import Mapping

from muster.scheduler.accounts import Accounts
from muster.scheduler.queue import IMPLICIT, QueueInfo
from muster.scheduler.specs import Phase, PodDisruptionBudgetSpec, PriorityClassSpec, QueueSpec, ResourceQuotaSpec


class ClusterRules(Accounts):
    """The part of SchedulerCache that hears of them."""

    # --- queues and priority classes ---

    def set_queue(self, spec: QueueSpec) -> None:
        """A Queue was added or changed."""
        queue = self.queue(spec.name)
        if queue.spec == spec:
            return
        if queue.spec is IMPLICIT.get(spec.name):
            queue.published = None  # a Queue that is made, or made anew, says nothing yet
        queue.spec = spec
        self._touch_queue(queue)

    def remove_queue(self, name: str) -> None:
        """A Queue is gone; `root` and `default` go back to what they are by themselves."""
        queue = self.queues.get(name)
        if queue is None:
            return
        queue.spec = IMPLICIT.get(name)
        self._touch_queue(queue)
        self.drop_queue_if_empty(queue)

    def _touch_queue(self, queue: QueueInfo) -> None:
        self.tree_changed = True
        self.relief.queues.update(self.queues)
        self._rules_changed()
        for job in queue.jobs.values():
            self.touch(job)
        if self.outlooks:
            # Queues inherit: what one says can hold for any.
            for job in self.jobs.values():
                self.reshape(job)

    def set_priority_class(self, spec: PriorityClassSpec) -> None:
        """A PriorityClass was added or changed."""
        if self.priority_classes.get(spec.name) != spec:
            self.priority_classes[spec.name] = spec
            self._reprioritise()

    def remove_priority_class(self, name: str) -> None:
        """A PriorityClass is gone."""
        if self.priority_classes.pop(name, None) is not None:
            self._reprioritise()

    def set_resource_quota(self, spec: ResourceQuotaSpec) -> None:
        """A ResourceQuota was added or changed."""
        quotas = self.resource_quotas.setdefault(spec.namespace, {})
        if quotas.get(spec.key) != spec:
            quotas[spec.key] = spec
            self._touch_quota(spec.namespace)

    def remove_resource_quota(self, key: str) -> None:
        """A ResourceQuota is gone."""
        namespace = key.partition("/")[0]
        quotas = self.resource_quotas.get(namespace, {})
        if quotas.pop(key, None) is not None:
            self._touch_quota(namespace)
        if not quotas:
            self.resource_quotas.pop(namespace, None)

    def set_disruption_budget(self, spec: PodDisruptionBudgetSpec) -> None:
        """A PodDisruptionBudget was added or changed."""
        budgets = self.disruption_budgets.setdefault(spec.namespace, {})
        before = budgets.get(spec.key)
        budgets[spec.key] = spec
        if before is not None and (before.selector != spec.selector or before.allowed < spec.allowed):
            self.budgets_relaxed += 1

    def remove_disruption_budget(self, key: str) -> None:
        """A PodDisruptionBudget is gone."""
        namespace = key.partition("/")[0]
        budgets = self.disruption_budgets.get(namespace, {})
        if budgets.pop(key, None) is not None:
            self.budgets_relaxed += 1
        if not budgets:
            self.disruption_budgets.pop(namespace, None)

    def _touch_quota(self, namespace: str) -> None:
        """Wake the gangs of the namespace that wait to be admitted."""
        for job in self.lot.jobs.values():
            if job.phase is Phase.PENDING and job.key.startswith(f"{namespace}/"):
                self.relief.queues.add(job.queue.name)

    def _rules_changed(self) -> None:
        """Who may evict whom has to be asked anew."""
        self.relief.victims = True
        self.rivals.clear()

    def _reprioritise(self) -> None:
        self._rules_changed()
        for job in self.jobs.values():
            priority = self._priority(job.spec.priority_class) if job.spec else 0
            if priority != job.priority:
                job.priority = priority
                self.touch(job)

    def _priority(self, name: str) -> int:
        """The class's value, else the global default's, else 0."""
        named = self.priority_classes.get(name)
        if named is not None:
            return named.value
        defaults = [each for each in self.priority_classes.values() if each.global_default]
        return min(defaults, key=lambda each: (each.value, each.name)).value if defaults else 0

    # --- namespaces ---

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A Namespace was added or its labels changed."""
        self.neighbours.set_namespace(name, labels)

    def remove_namespace(self, name: str) -> None:
        """A Namespace is gone."""
        self.neighbours.set_namespace(name, None)
