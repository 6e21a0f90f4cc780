"""Which tests belong into one of several test processes: those that share something that takes long to start.

pytest-xdist has marks for that, but with pytest 9.2 they are without effect. The largest of these groups are handed out
first, then one by one all other tests in their order.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

_RAY = "a Ray of this machine"  # 600 MB
_FULL = "a control plane with the controllers, and one that is disturbed"

TOGETHER = {
    "tests/differential/": "both operators, on two control planes",
    "tests/ray/": _RAY,
    "tests/integration/test_raycluster_ray_autoscaler.py": _RAY,
    "tests/cluster/test_control_plane.py": _FULL,
    "tests/integration/test_whole_control_plane.py": _FULL,
    "tests/integration/test_devices.py": "a control plane with kube-scheduler",
    "tests/integration/test_rayjob_wrong_types.py": "a control plane whose schemas are changed",
}
"""Beginnings of test ids, and what the tests share."""


class SharedTogether(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out tests one by one, to whichever process is free, but those that share something all to one."""

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid)


def scope(nodeid: str) -> str:
    """What the test is handed out with: tests of one scope run in one process."""
    return next((shared for beginning, shared in TOGETHER.items() if nodeid.startswith(beginning)), nodeid)
