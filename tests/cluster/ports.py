"""Free TCP ports of the loopback address."""

from __future__ import annotations

import random
import socket

# Below the range from which the kernel takes the ports of outgoing connections (32768 and up), which may be in use
# a moment after a check, and below the node ports (30000 and up) of a cluster on this machine.
_RANGE = range(20000, 30000)


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that nobody listens on now; another program may still be faster."""
    found: list[int] = []
    for port in random.sample(_RANGE, len(_RANGE)):
        if _is_free(port):
            found.append(port)
        if len(found) == count:
            return found
    raise OSError(f"fewer than {count} free ports in {_RANGE}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
