"""Names, and the labels that choose queue, priority and topology."""

from __future__ import annotations

import re

from muster.api.errors import FieldProblem
from muster.api.metadata import ObjectMeta
from muster.api.podgroup import DNS_1123_SUBDOMAIN
from muster.ray import labels, names
from muster.ray.validation.view import Problems

_SUBDOMAIN = re.compile(DNS_1123_SUBDOMAIN.removeprefix("^").removesuffix("$"))
_NAMES_AN_OBJECT = (labels.QUEUE_NAME, labels.PRIORITY_CLASS)
_TOPOLOGY_MODES = ("hard", "soft")


def name(metadata: ObjectMeta, longest: int) -> Problems:
    """The name leaves room for what is named after it, and may name a Service."""
    if len(metadata.name) > longest:
        yield FieldProblem(
            "metadata.name",
            f"has {len(metadata.name)} characters; at most {longest} leave room for the names of pods and services",
        )
    elif not names.is_dns_1035_label(metadata.name):
        yield FieldProblem(
            "metadata.name",
            f'"{metadata.name}" can\'t name a Service; use lower case letters, digits and "-", with a letter first '
            "and no dash at the end",
        )


def placement_labels(metadata: ObjectMeta) -> Problems:
    """What goes from labels into the PodGroup has a form that the API server takes."""
    for key in _NAMES_AN_OBJECT:
        value = metadata.labels.get(key)
        if value and not is_subdomain(value):
            yield FieldProblem(
                f"metadata.labels[{key}]",
                f'"{value}" can\'t be the name of an object; use lower case letters, digits, "-" and "."',
            )
    mode = metadata.labels.get(labels.NETWORK_TOPOLOGY_MODE)
    if mode and mode not in _TOPOLOGY_MODES:
        path = f"metadata.labels[{labels.NETWORK_TOPOLOGY_MODE}]"
        yield FieldProblem(path, f'must be hard or soft, not "{mode}"')
    tier = metadata.labels.get(labels.NETWORK_TOPOLOGY_HIGHEST_TIER)
    if tier and re.fullmatch("[0-9]{1,9}", tier) is None:
        path = f"metadata.labels[{labels.NETWORK_TOPOLOGY_HIGHEST_TIER}]"
        yield FieldProblem(path, f'must be a whole number from 0 up, not "{tier}"')


def is_subdomain(text: str) -> bool:
    """True when `text` may name most kinds of objects: pods, queues, priority classes."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None
