"""Compiles what the integration tests run, before they ask for it: `python -m tests.cluster.build_ahead`.

It gives way to other work of the machine. Needs nothing but rich. Where something is missing nothing is built and that
is no failure: the tests say what becomes of them there.
"""

from __future__ import annotations

import os
import sys

from tests.cluster.binaries import CONTROL_PLANE
from tests.cluster.gobuild import go_binaries
from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError
from tests.cluster.termination import end_as_if_interrupted

PROGRAMS = (*CONTROL_PLANE, "kube-controller-manager", "kube-scheduler", "kwok", "kubectl")
_NICENESS = 10


def main() -> int:
    """Build the programs; 0 also where that is not possible, 1 when a build fails, 130 when it is interrupted."""
    os.nice(_NICENESS)
    try:
        go_binaries(PROGRAMS)
    except PrerequisiteError as error:
        print(error, file=sys.stderr)
    except CommandFailedError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    end_as_if_interrupted()
    sys.exit(main())
