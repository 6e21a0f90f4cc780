"""The names of everything that is made for a RayCluster or a RayJob.

They are KubeRay's, to the letter: scripts, dashboards and NetworkPolicies that know them go on working.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

MAX_RAY_CLUSTER_NAME = 53
"""So that the names of pods and services that grow out of it fit into 63 characters."""
MAX_RAY_JOB_NAME = 47
"""The cluster of a RayJob is named after it, with a dash and five characters more."""

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' own for generated names: no vowels, no look-alikes."""
SUFFIX_LENGTH = 5

_DNS_1035_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_MAX_POD_PREFIX = 50
_MAX_CHECKED_NAME = 50
_MAX_LABEL_VALUE = 63


def is_dns_1035_label(name: str) -> bool:
    """True when `name` may name a Service: lower case letters, digits and dashes, a letter first; at most 63."""
    return len(name) <= 63 and _DNS_1035_LABEL.fullmatch(name) is not None


def random_suffix(random: Random, length: int = SUFFIX_LENGTH) -> str:
    """What the API server would append to a generateName. The caller owns the randomness."""
    return "".join(random.choice(SUFFIX_ALPHABET) for _ in range(length))


def head_pod_prefix(cluster: str) -> str:
    """The name of a head pod up to its random suffix."""
    return f"{cluster[:_MAX_POD_PREFIX]}-head-".lower()


def fixed_head_pod(cluster: str) -> str:
    """The name of the head pod where it has no suffix."""
    return head_pod_prefix(cluster).removesuffix("-")


def worker_pod_prefix(cluster: str, group: str) -> str:
    """The name of a worker pod up to its random suffix."""
    return f"{f'{cluster}-{group}'[:_MAX_POD_PREFIX]}-worker-".lower()


def replica_prefix(group: str) -> str:
    """The name of a replica of several hosts up to its random suffix; in full it is the value of a label."""
    return label_value(group + "-" + "x" * SUFFIX_LENGTH)[:-SUFFIX_LENGTH]


def identifier(cluster: str, node_type: str) -> str:
    """The value of the label `ray.io/identifier`. `node_type` is head or worker."""
    return label_value(f"{cluster}-{node_type}")


def head_service(cluster: str, user_service: Mapping[str, Any] | None = None) -> str:
    """The head service of a cluster; `user_service` is headGroupSpec.headService, whose own name wins."""
    metadata = (user_service or {}).get("metadata") or {}
    return str(metadata.get("name") or f"{cluster}-head-svc")


def headless_service(cluster: str) -> str:
    """The service that gives the hosts of multi-host workers their names."""
    return f"{cluster}-headless"


def serve_service(cluster: str) -> str:
    """The service in front of Ray Serve."""
    return f"{cluster}-serve-svc"


def service_fqdn(service: str, namespace: str, cluster_domain: str = "cluster.local") -> str:
    """The DNS name of a service, in full."""
    return f"{service}.{namespace}.svc.{cluster_domain}"


def generated(owner: str, suffix: str) -> str:
    """The name of a RayJob's cluster, and its job id: `suffix` comes from `random_suffix`."""
    return f"{owner}-{suffix}"


def is_generated(owner: str, name: str) -> bool:
    """Whether `name` may have come from `generated` for this owner."""
    prefix, _, suffix = name.rpartition("-")
    return prefix == owner and len(suffix) == SUFFIX_LENGTH and set(suffix) <= set(SUFFIX_ALPHABET)


def submitter_job(ray_job: str) -> str:
    """The Kubernetes Job that submits."""
    return ray_job


def ray_job_head_service(ray_job: str) -> str:
    """The service that leads to whichever cluster the RayJob has at the time."""
    return f"{ray_job}-head-svc"


def pod_group(owner: str) -> str:
    """The PodGroup of a RayJob, or of a RayCluster that stands alone."""
    return f"ray-{owner}-pg"


def head_ingress(cluster: str) -> str:
    """The Ingress in front of the dashboard."""
    return checked_name(f"{cluster}-head-ingress")


def service_account(cluster: str) -> str:
    """ServiceAccount, Role and RoleBinding of the autoscaler."""
    return checked_name(cluster)


def redis_cleanup_job(cluster: str) -> str:
    """The Job that clears a deleted cluster's state out of its Redis."""
    return f"{cluster}-redis-cleanup"[:_MAX_LABEL_VALUE].rstrip("-.")


def token_secret(cluster: str) -> str:
    """The Secret with the cluster's token, where Muster makes it."""
    return checked_name(cluster)


def checked_name(name: str) -> str:
    """The last 50 characters; `r` in place of a leading digit or punctuation."""
    name = name[-_MAX_CHECKED_NAME:]
    return name if not name or name[0].isalpha() else f"r{name[1:]}"


def label_value(value: str) -> str:
    """The last 63 characters; `r` in place of leading punctuation."""
    value = value[-_MAX_LABEL_VALUE:]
    return value if not value or value[0].isalnum() else f"r{value[1:]}"
