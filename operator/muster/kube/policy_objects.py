"""What limits namespaces and disruptions, as far as it is read (see `muster.kube.objects`)."""

from __future__ import annotations

from typing import Any

import msgspec

from muster.kube.objects import ApiObject, Quantities


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of an object."""


class ResourceQuotaSpec(_Part, frozen=True):
    """The limits of a namespace; with scopes they hold for some of its pods only."""

    hard: Quantities | None = None
    scopes: list[str] | None = None
    scope_selector: dict[str, Any] | None = None


class ResourceQuotaStatus(_Part, frozen=True):
    """The limits that are enforced, and what counts against them."""

    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(ApiObject, frozen=True):
    """A ResourceQuota."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()
