"""Makes Muster's image, or the wheels for it: `python -m tests.cluster.node image|wheels`."""

from __future__ import annotations

import argparse
import sys

from tests.cluster.cache import Cache
from tests.cluster.node.muster_image import build_image, prepare_wheels
from tests.cluster.node.requirements import images_are_public
from tests.cluster.node.supply import make_supply
from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError
from tests.cluster.progress import Steps


def main() -> int:
    """Run one command; 0 when it succeeded, and the image's tag or the wheels' folder on standard output."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.node", description=__doc__)
    parser.add_argument("what", choices=("image", "wheels"))
    what = parser.parse_args().what
    steps = Steps()
    cache = Cache(steps=steps)
    try:
        print(prepare_wheels(cache, steps) if what == "wheels" else make_image(cache, steps))
    except (PrerequisiteError, CommandFailedError, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def make_image(cache: Cache, steps: Steps) -> str:
    """Build Muster's image in the engine that the local cluster would use, and leave the engine as it was."""
    supply = make_supply(cache, steps, public=images_are_public())
    try:
        supply.prepare_base()
        return build_image(supply.docker, supply.base_image, cache=cache, steps=steps)
    finally:
        supply.stop_engine()


if __name__ == "__main__":
    sys.exit(main())
