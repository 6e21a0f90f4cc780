"""Every version that the local cluster pins, in one place.

A cache entry is named after the versions that it was built from, so a change here builds what it touches anew and
leaves the rest.
"""

from __future__ import annotations

from typing import Final

KUBERNETES: Final = "v1.34.0"
ETCD: Final = "v3.6.5"
COREDNS: Final = "v1.15.0"
KIND: Final = "v0.33.0"
CRICTL: Final = "v1.34.0"
KWOK: Final = "v0.8.0"

RAY: Final = "2.60.0"
DEBIAN: Final = "bookworm"

GO_MINIMUM: Final = (1, 26)
"""The newest `go` directive among the modules above (coredns and kwok)."""

GO_INSTALL: Final = "1.26.0"
"""The release that the advice for a machine without Go names."""
