"""A scheduler for tests of the benchmark: it binds so many pods and no more, and may end then.

    python -m tests.bench.stand_in --kubeconfig FILE --bind N [--end STATUS]

Its pods' schedulerName is `bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from bench.api_client import ApiClient
from bench.bare_client import BareClient, Pod, node_names


class StandIn(BareClient):
    """Binds the first `left` pods."""

    left = 0
    status: int | None = None

    def take(self, pod: Pod) -> None:
        if self.left > 0:
            self.left -= 1
            super().take(pod)

    async def bind(self, pod: Pod, node: str) -> None:
        await super().bind(pod, node)
        if self.left == 0 and self.status is not None:
            print("this is how it ends", file=sys.stderr, flush=True)
            os._exit(self.status)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--bind", type=int)
    parser.add_argument("--end", type=int)
    options = parser.parse_args()
    async with ApiClient(options.kubeconfig) as client:
        stand_in = StandIn(client, await node_names(client))
        stand_in.left, stand_in.status = options.bind, options.end
        await stand_in.run()


if __name__ == "__main__":
    asyncio.run(main())
