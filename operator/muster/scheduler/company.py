"""What a pod asks of the places of other pods: affinity, anti-affinity, topology spread, free host ports.

All values are frozen and hashable. `topology_key` names the label of nodes by which the cluster is divided into
domains; a node without it is in none.
"""

from __future__ import annotations

from dataclasses import dataclass

from muster.scheduler.selectors import PodSelector

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - how Kubernetes writes that a port is taken on every address


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a container wants for itself."""

    port: int
    protocol: str = "TCP"
    address: str = ANY_ADDRESS

    def conflicts(self, other: HostPort) -> bool:
        """Whether not both can be had on one node."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Be in a domain where such a pod is (affinity), or in none (anti-affinity)."""

    pods: PodSelector
    topology_key: str


@dataclass(frozen=True, slots=True)
class PreferredAffinity:
    """A wish; `weight` 1 to 100 for affinity, negative for anti-affinity."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """Keep the number of such pods nearly equal in all domains.

    `hard` means DoNotSchedule, else it is a wish (ScheduleAnyway). With fewer domains than `min_domains` the emptiest
    counts as empty. `honor_affinity` leaves nodes out of account that the pod's own node selector and affinity
    exclude, `honor_taints` those with taints that it does not tolerate.
    """

    pods: PodSelector
    topology_key: str
    max_skew: int = 1
    hard: bool = True
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


@dataclass(frozen=True, slots=True)
class Company:
    """All that a pod asks of other pods' places.

    Another pod satisfies `affinity` only if all terms select it (Kubernetes' rule); of `anti_affinity` any term will
    refuse.
    """

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred: tuple[PreferredAffinity, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
