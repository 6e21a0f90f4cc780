"""Makes what the local cluster needs: `python -m tests.cluster.node image|wheels|supplies`.

`image` is Muster's, `wheels` are those for it; `supplies` are the programs and images of a cluster, built before they
are asked for. Needs nothing but rich and, for a wheel, hatchling.
"""

from __future__ import annotations

import argparse
import sys

from tests.cluster.cache import Cache
from tests.cluster.node.muster_image import build_image, prepare_wheels
from tests.cluster.node.requirements import images_are_public, missing_for_node_level
from tests.cluster.node.supply import make_supply
from tests.cluster.prerequisites import PrerequisiteError, require
from tests.cluster.process import CommandFailedError
from tests.cluster.progress import Steps
from tests.cluster.termination import end_as_if_interrupted


def main() -> int:
    """Run one command; 0 when it succeeded, and the image's tag or the wheels' folder on standard output.

    A terminated one takes back what it has done, as an interrupted one does.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.node", description=__doc__)
    parser.add_argument("what", choices=("image", "wheels", "supplies"))
    what = parser.parse_args().what
    steps = Steps()
    cache = Cache(steps=steps)
    try:
        if what == "supplies":
            make_supplies(cache, steps)
        else:
            print(prepare_wheels(cache, steps) if what == "wheels" else make_image(cache, steps))
    except (PrerequisiteError, CommandFailedError, TimeoutError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def make_supplies(cache: Cache, steps: Steps) -> None:
    """Build all that a local cluster is made of, the first time; nothing happens where images are pulled."""
    supply = make_supply(cache, steps, public=False)
    if supply.is_prepared() or images_are_public():
        return
    require(missing_for_node_level())
    try:
        supply.start_engine()
        supply.prepare_cluster()
    finally:
        supply.stop_engine()


def make_image(cache: Cache, steps: Steps) -> str:
    """Build Muster's image in the engine that the local cluster would use, and leave the engine as it was."""
    supply = make_supply(cache, steps, public=images_are_public())
    try:
        supply.prepare_base()
        return build_image(supply.docker, supply.base_image, cache=cache, steps=steps)
    finally:
        supply.stop_engine()


if __name__ == "__main__":
    end_as_if_interrupted()
    sys.exit(main())
