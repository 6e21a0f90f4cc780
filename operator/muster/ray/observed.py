"""Pods and services as the rules in this package look at them.

Protocols, because nothing here knows who reads the API server: the typed objects of an informer fit as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Metadata(Protocol):
    """Who an object is."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels; empty when it has none."""

    @property
    def deletion_timestamp(self) -> str | None:
        """Since when it is on its way out."""


class Condition(Protocol):
    """A condition; `status` is True, False or Unknown."""

    @property
    def type(self) -> str:
        """What it is about."""

    @property
    def status(self) -> str:
        """Whether it holds."""

    @property
    def reason(self) -> str | None:
        """Why, in a word."""

    @property
    def message(self) -> str | None:
        """Why, for people."""


class WhyNotRunning(Protocol):
    """Why a container waits, or ended."""

    @property
    def reason(self) -> str | None:
        """In a word."""

    @property
    def message(self) -> str | None:
        """For people."""


class ContainerState(Protocol):
    """At most one of the two is set; neither while the container runs."""

    @property
    def waiting(self) -> WhyNotRunning | None:
        """Why it has not started."""

    @property
    def terminated(self) -> WhyNotRunning | None:
        """How it ended."""


class ContainerStatus(Protocol):
    """One container of a pod."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def ready(self) -> bool:
        """Whether its readiness probe succeeds."""

    @property
    def state(self) -> ContainerState:
        """What it does."""


class NamedContainer(Protocol):
    """A container as the pod's spec has it."""

    @property
    def name(self) -> str:
        """Its name."""


class PodSpec(Protocol):
    """What a pod asks for."""

    @property
    def containers(self) -> Sequence[NamedContainer]:
        """Its containers, Ray's first."""

    @property
    def restart_policy(self) -> str | None:
        """Always, OnFailure or Never; None is Always."""


class PodStatus(Protocol):
    """What became of a pod."""

    @property
    def phase(self) -> str | None:
        """Pending, Running, Succeeded, Failed or Unknown."""

    @property
    def pod_ip(self) -> str | None:
        """Its address."""

    @property
    def conditions(self) -> Sequence[Condition]:
        """Its conditions."""

    @property
    def container_statuses(self) -> Sequence[ContainerStatus]:
        """Its containers."""


class Pod(Protocol):
    """A pod."""

    @property
    def metadata(self) -> Metadata:
        """Who it is."""

    @property
    def spec(self) -> PodSpec:
        """What it asks for."""

    @property
    def status(self) -> PodStatus:
        """What became of it."""


class ServicePort(Protocol):
    """A port of a service."""

    @property
    def name(self) -> str | None:
        """Its name."""

    @property
    def port(self) -> int:
        """Its number."""

    @property
    def target_port(self) -> int | str | None:
        """The container's port behind it."""

    @property
    def node_port(self) -> int | None:
        """The nodes' port in front of it."""


class ServiceSpec(Protocol):
    """Where a service leads."""

    @property
    def cluster_ip(self) -> str | None:
        """Its own address; `None`, as text, for a headless one."""

    @property
    def ports(self) -> Sequence[ServicePort]:
        """Its ports."""


class Service(Protocol):
    """A service."""

    @property
    def metadata(self) -> Metadata:
        """Who it is."""

    @property
    def spec(self) -> ServiceSpec:
        """Where it leads."""
