"""Every version that the local cluster pins, in one place.

A cache entry is named after the versions that it was built from, so a change here builds what it touches anew and
leaves the rest. After a change of a Go program's version `make lock` writes programs/go.mod anew.
"""

from __future__ import annotations

from typing import Final

KUBERNETES: Final = "v1.34.0"
ETCD: Final = "v3.6.5"
COREDNS: Final = "v1.12.4"
"""The first that is written for the client libraries of this Kubernetes, whose programs it is compiled with."""

KIND: Final = "v0.33.0"
KWOK: Final = "v0.6.1"
"""The newest that compiles with the client libraries of this Kubernetes."""

KUBERAY: Final = "v1.5.0"
"""The operator that Muster is compared with, in tests that ask for it; no cluster is made with it."""

SCHEDULER_PLUGINS: Final = "v0.34.7"
"""Coscheduling, which the benchmark runs beside Muster; of the same minor version as Kubernetes."""

RAY: Final = "2.60.0"
DEBIAN: Final = "bookworm"

GO_MINIMUM: Final = (1, 24)
"""The newest `go` directive among the modules above."""

GO_INSTALL: Final = "1.26.0"
"""The release that the advice for a machine without Go names."""
