"""`python -m tests.compatibility`: KubeRay's tests, one after the other, and a table of how each ended.

KubeRay's own waiting times hold (one, two and five minutes); KUBERAY_TEST_TIMEOUT_SHORT, _MEDIUM and _LONG in the
environment change them. What the tests print stays in build/compatibility.
"""

from __future__ import annotations

import argparse
import re
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.cluster import kuberay, versions
from tests.cluster.cache import Cache
from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError
from tests.cluster.progress import Steps
from tests.cluster.termination import end_as_if_interrupted, remember_interrupts
from tests.compatibility import images
from tests.compatibility.cases import Case, cases, unlisted
from tests.compatibility.execution import Outcome, Result, execute
from tests.compatibility.programs import programs, tests_of
from tests.e2e import target as targets
from tests.e2e.install import InstallError, install, kubectl
from tests.e2e.target import Target
from tests.e2e.workloads import REPOSITORY

CONFIGURATION = Path(__file__).with_name("kind-config.yaml")
LOGS = REPOSITORY / "build" / "compatibility"
_FAILURES = (PrerequisiteError, CommandFailedError, InstallError, LookupError, TimeoutError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 0 when all of it passed, 1 otherwise, 130 when it is interrupted."""
    options = _parser().parse_args(arguments)
    wanted = [case for case in cases() if re.search(options.only, f"{case.package} {case.name}")]
    steps = Steps()
    end_as_if_interrupted()
    remember_interrupts()
    try:
        built = programs(Cache(steps=steps), steps)
        _check_complete(built)
        with targets.kind(
            steps, name=options.name, configuration=CONFIGURATION, keep=options.keep, prepare=images.load
        ) as target:
            with steps.step("Muster into the cluster"):
                install(target)
            if not options.admission:
                kubectl(target, "delete", "validatingwebhookconfiguration", "muster")
            results = _run(wanted, built, target, options, steps)
    except _FAILURES as error:
        print(f"the tests could not run: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(table(results))
    return 0 if all(result.outcome is Outcome.PASSED for result in results) else 1


def table(results: Sequence[Result]) -> str:
    """The results as rows of Markdown, and how many there are of each."""
    rows = [f"| `{r.case.package}` `{r.case.name}` | {r.outcome.value} | {r.seconds:.0f} s |" for r in results]
    counts = [f"{sum(r.outcome is one for r in results)} {one.value}" for one in Outcome]
    return "\n".join(["| test | result | time |", "|---|---|---|", *rows, "", ", ".join(counts)])


def _check_complete(built: dict[str, Path]) -> None:
    """Raises LookupError when KubeRay's programs have other tests than the list in cases.py."""
    differing = [name for package, program in built.items() for name in unlisted(package, tests_of(program))]
    if differing:
        raise LookupError(f"tests/compatibility/cases.py and KubeRay disagree about {', '.join(differing)}")


def _run(
    wanted: Sequence[Case], built: dict[str, Path], target: Target, options: argparse.Namespace, steps: Steps
) -> list[Result]:
    LOGS.mkdir(parents=True, exist_ok=True)
    source = kuberay.source()
    environment = {
        "KUBECONFIG": str(target.kubeconfig),
        "KUBERAY_TEST_RAY_IMAGE": images.ray_image_of(target.ray_image),
        "KUBERAY_TEST_RAY_VERSION": versions.RAY,
    }

    interrupted = threading.Event()

    def run(case: Case) -> Result:
        log = LOGS / f"{case.package}-{re.sub(r'[^A-Za-z0-9]+', '-', case.name).strip('-')}.log"
        result = execute(
            case,
            built[case.package],
            cwd=source / "test" / case.package,
            environment=environment,
            log=log,
            deadline=options.deadline,
            interrupted=interrupted,
        )
        steps.note(f"{result.outcome.value}: {case.package} {case.name} ({result.seconds:.0f} s)")
        return result

    with ThreadPoolExecutor(options.parallel) as pool:
        try:
            return list(pool.map(run, wanted))
        except BaseException:
            interrupted.set()
            pool.shutdown(cancel_futures=True)
            raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.compatibility", description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="run those whose `package test/part` matches")
    parser.add_argument("--parallel", type=int, default=1, help="how many at a time (default: %(default)s)")
    parser.add_argument("--deadline", type=float, default=900.0, help="seconds for one test (default: %(default)s)")
    parser.add_argument("--name", default="muster-compatibility", help="of the kind cluster (default: %(default)s)")
    parser.add_argument(
        "--no-admission", dest="admission", action="store_false", help="without the webhook: faults show in the status"
    )
    parser.add_argument("--keep", action="store_true", help="leave the cluster up, and take one that was left up")
    return parser


if __name__ == "__main__":
    sys.exit(main())
