"""Kinds of objects and where the API server keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from muster.kube.errors import ImpossibleName


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object: its group (empty for the core group), version, plural and kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What stands in an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of one object, of a collection in a namespace, or (without both) of the whole collection.

        Raises ImpossibleName for a name that can't be one segment of a path: an empty name would turn a request for one
        object into a request for all of them, and the API server takes an escaped slash for one that divides.
        """
        parts = ["", "apis", self.group, self.version] if self.group else ["", "api", self.version]
        if namespace is not None and self.namespaced:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name is not None:
            if self.namespaced and namespace is None:
                raise ValueError(f"{self.kind} {name!r}: a namespaced object needs its namespace")
            parts.append(_segment(name))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


def _segment(name: str) -> str:
    # The server's own rule for names: what it takes apart, or decodes, must not be in one.
    if name in ("", ".", "..") or "/" in name or "%" in name:
        raise ImpossibleName(name)
    try:
        return quote(name, safe="")
    except UnicodeEncodeError:
        raise ImpossibleName(name) from None


PODS: Final = Resource("", "v1", "pods", "Pod")
PODTEMPLATES: Final = Resource("", "v1", "podtemplates", "PodTemplate")
SERVICES: Final = Resource("", "v1", "services", "Service")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
CONFIGMAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
SERVICEACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")
NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
JOBS: Final = Resource("batch", "v1", "jobs", "Job")
EVENTS: Final = Resource("events.k8s.io", "v1", "events", "Event")
LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
PRIORITYCLASSES: Final = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
PODDISRUPTIONBUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
RESOURCEQUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")
CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
PERSISTENTVOLUMECLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENTVOLUMES: Final = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
STORAGECLASSES: Final = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CSINODES: Final = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
RESOURCECLAIMS: Final = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCESLICES: Final = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
DEVICECLASSES: Final = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
VALIDATINGWEBHOOKCONFIGURATIONS: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
PODGROUPS: Final = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
QUEUES: Final = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
INGRESSES: Final = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
ROLES: Final = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLEBINDINGS: Final = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
RAYCLUSTERS: Final = Resource("ray.io", "v1", "rayclusters", "RayCluster")
RAYJOBS: Final = Resource("ray.io", "v1", "rayjobs", "RayJob")
