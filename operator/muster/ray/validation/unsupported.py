"""What the wire format has and this version of Muster does not.

A feature that is passed over in silence would leave a cluster without the protection that its owner asked for, or
running for ever; so each is refused by the field that asks for it. Building the feature removes its line here.
"""

from __future__ import annotations

from collections.abc import Callable

from muster.api.errors import FieldProblem
from muster.api.raycluster import RayClusterSpec
from muster.ray.validation.view import ClusterView, Problems

CLUSTER_FEATURES: dict[str, Callable[[RayClusterSpec], bool]] = {
    "historyServerOptions": lambda spec: spec.history_server_options is not None,
    "networkPolicy": lambda spec: spec.network_policy is not None,
    "tlsOptions.enabled": lambda spec: bool(spec.tls_options and spec.tls_options.enabled),
}

NOT_YET = "is not supported yet by this version of Muster; remove it"


def cluster_features(view: ClusterView) -> Problems:
    """Features of a cluster that come later."""
    for feature, asked_for in CLUSTER_FEATURES.items():
        if asked_for(view.spec):
            field, _, value = feature.partition(" ")
            yield FieldProblem(f"{view.path}.{field}", f"{value} {NOT_YET}".strip())
