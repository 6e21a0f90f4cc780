"""Tells people which pods a decision has put where, in one event.

Of a gang its PodGroup tells, all members in one event: one on each pod would cost as many writes again as the gates do.
A pod that was decided about alone has its own event, as kube-scheduler gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from muster.engine.delegation import DEFAULT_SCHEDULER
from muster.kube.events import EventRecorder, ObjectReference
from muster.scheduler.outcome import Binding

SCHEDULED: Final = "Scheduled"
DELEGATED: Final = "Delegated"
_LONGEST_NOTE: Final = 1024
"""Bytes that an event's note may have (names are ASCII)."""


class BindingNews:
    """Says what was bound; `pod_group` names a PodGroup (`namespace/name`), None where it is not there."""

    def __init__(self, recorder: EventRecorder, pod_group: Callable[[str], ObjectReference | None]) -> None:
        self._recorder = recorder
        self._pod_group = pod_group

    def tell(self, bindings: Iterable[Binding]) -> None:
        """Tell of the bindings of one decision, all of one job."""
        done = sorted(bindings, key=lambda each: each.pod)
        for reason, told in (
            (SCHEDULED, [each for each in done if not each.delegate]),
            (DELEGATED, [each for each in done if each.delegate]),
        ):
            group = self._pod_group(told[0].job) if len(told) > 1 else None
            if group is not None:
                self._say(group, reason, _of_gang(reason, told), change=told[0].task_uid)
            else:
                for each in told:
                    about = ObjectReference("v1", "Pod", each.namespace, each.pod, each.task_uid)
                    self._say(about, reason, _of_pod(reason, each))

    def _say(self, about: ObjectReference, reason: str, message: str, change: str = "") -> None:
        self._recorder.event(about, "Normal", reason, message, "Binding", change=change)


def _of_pod(reason: str, binding: Binding) -> str:
    if reason == DELEGATED:
        return f"Its gang has a place: {DEFAULT_SCHEDULER} is to bind it to {binding.node}"
    return f"Successfully assigned {binding.namespace}/{binding.pod} to {binding.node}"


def _of_gang(reason: str, bindings: list[Binding]) -> str:
    done = f"are for {DEFAULT_SCHEDULER} to bind" if reason == DELEGATED else "bound"
    return _listed(f"{len(bindings)} pods {done}: ", [f"{each.pod} -> {each.node}" for each in bindings])


def _listed(message: str, pairs: list[str]) -> str:
    """The message with as many of the pairs as it has room for, and the number of the others."""
    text, separator = message, ""
    for index, pair in enumerate(pairs):
        rest = f", and {len(pairs) - index - 1} more" if index + 1 < len(pairs) else ""
        if len(text) + len(separator) + len(pair) + len(rest) > _LONGEST_NOTE:
            return f"{text}{separator}and {len(pairs) - index} more"
        text, separator = f"{text}{separator}{pair}", ", "
    return text
