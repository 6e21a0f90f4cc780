"""Conditions in status, in the two shapes that exist: the Kubernetes one and Volcano's."""

from __future__ import annotations

from pydantic import Field

from muster.api.fieldtypes import Timestamp
from muster.api.model import Model


class Condition(Model):
    """A metav1.Condition. `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Timestamp | None = None
    observed_generation: int | None = None


class PodGroupCondition(Model):
    """Volcano's condition of a PodGroup: `transitionID` names the scheduling cycle that wrote it."""

    type: str | None = None
    status: str | None = None
    transition_id: str | None = Field(default=None, alias="transitionID")
    last_transition_time: Timestamp | None = None
    reason: str | None = None
    message: str | None = None
