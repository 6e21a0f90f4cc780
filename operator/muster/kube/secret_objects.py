"""Secrets, as far as they are read. What is in one is never part of its text form, so that no log can have it."""

from __future__ import annotations

import base64
import binascii

import msgspec

from muster.kube.object_base import ApiObject


class Secret(ApiObject, frozen=True):
    """A Secret; `data` is base64."""

    data: dict[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Secret({self.key}, keys: {', '.join(sorted(self.data)) or 'none'})"

    def text(self, key: str) -> str | None:
        """The text under the key, without white space around it; None where there is none that could be one.

        One of several lines is none: an HTTP library refuses it as a header, and tells everybody what it was.
        """
        try:
            text = base64.b64decode(self.data.get(key) or "", validate=True).decode("ascii").strip()
        except (binascii.Error, UnicodeDecodeError, ValueError):
            return None
        return text if text and text.isprintable() else None
