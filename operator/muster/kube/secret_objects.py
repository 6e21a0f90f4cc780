"""Secrets, as far as they are read. What is in one is never part of its text form, so that no log can have it."""

from __future__ import annotations

import base64
import binascii
from enum import Enum

import msgspec

from muster.kube.object_base import ApiObject


class TextFault(Enum):
    """Why a value is no text of use, in words that hold nothing of it."""

    MISSING = "is not there"
    EMPTY = "is empty"
    NOT_BASE64 = "is not base64"
    NOT_UTF8 = "is not UTF-8"
    SEVERAL_LINES = "has several lines"
    CHARACTERS = "has characters that are not printable ASCII"


class Secret(ApiObject, frozen=True):
    """A Secret; `data` is base64."""

    data: dict[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Secret({self.key}, keys: {', '.join(sorted(self.data)) or 'none'})"

    def text(self, key: str) -> str | None:
        """The text under the key, without white space around it; None where there is none that could be one.

        One of several lines is none: an HTTP library refuses it as a header, and tells everybody what it was.
        """
        found = self._read(key)
        return found if isinstance(found, str) else None

    def fault(self, key: str) -> TextFault | None:
        """Why there is no text under the key; None where there is one."""
        found = self._read(key)
        return found if isinstance(found, TextFault) else None

    def _read(self, key: str) -> str | TextFault:
        if key not in self.data:
            return TextFault.MISSING
        try:
            text = base64.b64decode(self.data[key], validate=True).decode().strip()
        except UnicodeDecodeError:
            return TextFault.NOT_UTF8
        except (binascii.Error, ValueError):
            return TextFault.NOT_BASE64
        if not text:
            return TextFault.EMPTY
        if len(text.splitlines()) > 1:
            return TextFault.SEVERAL_LINES
        return text if text.isascii() and text.isprintable() else TextFault.CHARACTERS
