"""The Ingress in front of a cluster's dashboard, as a manifest.

Without `ingressOptions` it is the one that KubeRay always made: any host, `/<cluster>/(.*)`, to be rewritten by what
the cluster's annotations tell the ingress controller. With them it is as they say. The annotations of the cluster are
the Ingress's too, but for the one that names the class, which has a field of its own.
"""

from __future__ import annotations

from typing import Any, Final

from muster.api.raycluster import RayCluster
from muster.ray import labels, names
from muster.ray.copied_annotations import copied_annotations
from muster.ray.owner import owner_reference
from muster.ray.services import dashboard_port, head_service
from muster.ray.template_hash import content_hash

Manifest = dict[str, Any]

CLASS: Final = "kubernetes.io/ingress.class"
_NOT_COPIED: Final = (CLASS, labels.LAST_APPLIED)
_ROOM: Final = 1024
"""Bytes of annotations for the one that Muster adds."""


def head_ingress(cluster: RayCluster) -> Manifest:
    """The Ingress of a cluster that asks for one. Its annotation `muster.dev/spec-hash` tells what it was made from."""
    service = head_service(cluster)
    spec = _spec(cluster, service["metadata"]["name"], dashboard_port(service["spec"]["ports"]))
    annotations = copied_annotations(cluster.metadata.annotations, without=_NOT_COPIED, room=_ROOM)
    made_from = content_hash({"spec": spec, "annotations": annotations})
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": names.head_ingress(cluster.metadata.name),
            "namespace": cluster.metadata.namespace,
            "labels": {
                labels.CLUSTER: cluster.metadata.name,
                labels.IDENTIFIER: names.identifier(cluster.metadata.name, labels.HEAD),
                labels.APP_NAME: labels.APPLICATION,
                labels.CREATED_BY: labels.OPERATOR,
            },
            "annotations": {**annotations, labels.SPEC_HASH: made_from},
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": spec,
    }


def _spec(cluster: RayCluster, service: str, port: int) -> dict[str, Any]:
    options = cluster.spec.head_group_spec.ingress_options
    path: dict[str, Any] = {"path": f"/{cluster.metadata.name}/(.*)", "pathType": "Exact"}
    if options is not None:
        path = {"path": options.path or "/", "pathType": options.path_type or "Prefix"}
    path["backend"] = {"service": {"name": service, "port": {"number": port}}}
    rule: dict[str, Any] = {"http": {"paths": [path]}}
    spec: dict[str, Any] = {"rules": [rule]}
    if options is not None and options.host:
        rule["host"] = options.host
    if options is not None and options.tls:
        spec["tls"] = [one.dump() for one in options.tls]
    if CLASS in cluster.metadata.annotations:
        spec["ingressClassName"] = cluster.metadata.annotations[CLASS]
    return spec
