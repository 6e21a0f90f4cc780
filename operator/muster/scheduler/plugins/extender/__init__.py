"""Volcano's `extender`: a program outside is asked over HTTP what it thinks. docs/extender.md says how."""

from muster.scheduler.plugins.extender.plugin import Extender

__all__ = ["Extender"]
