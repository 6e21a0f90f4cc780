"""Who places the gangs of the clusters that the controllers make."""

from __future__ import annotations

from enum import StrEnum


class BatchScheduler(StrEnum):
    """`MUSTER` takes the gate off the pods of a gang that has a place. Under `VOLCANO` there is no gate: Volcano reads
    the same PodGroups. With `NONE` there are no gangs: no PodGroup is made, no queue is looked at, and Kubernetes' own
    scheduler (or the one that a template names) places each pod for itself.
    """

    MUSTER = "muster"
    VOLCANO = "volcano"
    NONE = "none"
