"""The plugins that come with Muster, by the name a configuration calls them."""

from __future__ import annotations

from muster.scheduler.framework import Plugin
from muster.scheduler.plugins.binpack import Binpack
from muster.scheduler.plugins.capacity import Capacity
from muster.scheduler.plugins.cdp import CooldownProtection
from muster.scheduler.plugins.conformance import Conformance
from muster.scheduler.plugins.drf import DominantResourceFairness
from muster.scheduler.plugins.extender import Extender
from muster.scheduler.plugins.gang import Gang
from muster.scheduler.plugins.nodegroup import NodeGrouping
from muster.scheduler.plugins.nodeorder import NodeOrdering
from muster.scheduler.plugins.overcommit import Overcommit
from muster.scheduler.plugins.pdb import PodDisruptionBudgets
from muster.scheduler.plugins.predicates import Predicates
from muster.scheduler.plugins.priority import Priority
from muster.scheduler.plugins.proportion import Proportion
from muster.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit
from muster.scheduler.plugins.resourcequota import ResourceQuotas
from muster.scheduler.plugins.sla import Sla
from muster.scheduler.plugins.task_topology import TaskTopologies
from muster.scheduler.plugins.tdm import TimeDivision
from muster.scheduler.plugins.usage import Usage

PLUGINS: dict[str, type[Plugin]] = {
    plugin.name: plugin
    for plugin in (
        Binpack,
        Capacity,
        Conformance,
        CooldownProtection,
        DominantResourceFairness,
        Extender,
        Gang,
        NodeGrouping,
        NodeOrdering,
        Overcommit,
        PodDisruptionBudgets,
        Predicates,
        Priority,
        Proportion,
        ResourceQuotas,
        ResourceStrategyFit,
        Sla,
        TaskTopologies,
        TimeDivision,
        Usage,
    )
}

NOT_YET = frozenset(
    {
        "deviceshare",
        "network-topology-aware",
        "numaaware",
        "rescheduling",
    }
)
"""Plugins of Volcano that a configuration may know but that are not here."""
