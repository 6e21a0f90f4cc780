# ruff: noqa: RUF012 - msgspec copies an empty default for each object; ruff knows its structs only by a base in the file
"""Service accounts, roles and their bindings, as they are read (see `muster.kube.objects`)."""

from __future__ import annotations

import msgspec

from muster.kube.object_base import ApiObject, Part


class ServiceAccount(ApiObject, frozen=True):
    """An identity of pods."""


class PolicyRule(Part, frozen=True):
    """What a role allows. `api_groups` has the empty text for the core group."""

    api_groups: list[str] = []
    resources: list[str] = []
    verbs: list[str] = []
    resource_names: list[str] = []
    non_resource_urls: list[str] = msgspec.field(name="nonResourceURLs", default_factory=list)


class Role(ApiObject, frozen=True):
    """What is allowed in a namespace. The API server writes null for no rules."""

    rules: list[PolicyRule] | None = None


class Subject(Part, frozen=True):
    """Whom a binding gives a role to."""

    kind: str
    name: str
    namespace: str | None = None
    api_group: str | None = None


class RoleReference(Part, frozen=True):
    """The role of a binding; it can't be changed."""

    kind: str = ""
    name: str = ""
    api_group: str = ""


class RoleBinding(ApiObject, frozen=True):
    """Who has a role."""

    role_ref: RoleReference = RoleReference()
    subjects: list[Subject] | None = None
