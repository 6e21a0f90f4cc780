"""Writes as the API server counts them in its own metrics, by verb and resource: `PATCH pods`, `POST pods/binding`.

Of Leases nothing is counted: components renew theirs whatever they do.
"""

from __future__ import annotations

import re
from collections import Counter

_ANSWERED = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(resource|subresource|verb)="([^"]*)"')
_VERBS = {"POST": "POST", "PUT": "PUT", "PATCH": "PATCH", "APPLY": "PATCH", "DELETE": "DELETE"}
_VERBS["DELETECOLLECTION"] = "DELETE"
_LEASES = "leases"


def writes(metrics: str) -> Counter[str]:
    """All writes that have been answered so far, refused ones too; `metrics` is what stands at `/metrics`."""
    found: Counter[str] = Counter()
    for labels, number in _ANSWERED.findall(metrics):
        label = dict(_LABEL.findall(labels))
        verb, resource = _VERBS.get(label.get("verb", "")), label.get("resource", "")
        if verb is not None and resource != _LEASES:
            found[_key(verb, resource, label.get("subresource", ""))] += int(float(number))
    return found


def write(method: str, path: str) -> str:
    """What a request of ours is counted as; `path` is that of an object or of a collection."""
    parts = path.strip("/").split("/")
    rest = parts[3:] if parts[0] == "apis" else parts[2:]
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    return _key(method, rest[0], rest[2] if len(rest) > 2 else "")


def _key(verb: str, resource: str, subresource: str) -> str:
    return f"{verb} {resource}/{subresource}" if subresource else f"{verb} {resource}"
