"""A piece of news about an object, before it becomes an Event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EventType = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str | None
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class News:
    """What is told, and of what: `subject` is the part of the object that it is about, `change` says which time."""

    regarding: ObjectReference
    type: EventType
    reason: str
    message: str
    action: str
    change: str = ""
    subject: str = ""

    @property
    def topic(self) -> tuple[str, str, str]:
        """Of news on one topic the latest alone is true; news on several topics are true side by side."""
        return self.reason, self.action, self.subject
