"""One run for all tests: every case under every operator, at once."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster import kuberay
from tests.cluster.control_plane import build
from tests.cluster.control_plane_commands import Options
from tests.cluster.prerequisites import PrerequisiteError
from tests.conftest import refuse
from tests.differential.comparison import Finding, findings
from tests.differential.manifests import Case, samples
from tests.differential.rule_cases import rule_cases
from tests.differential.run import KUBERAY, MUSTER, Seen, run


@dataclass(frozen=True, eq=False)
class SideBySide:
    """The outcome of the run. What Muster lacks is not in it."""

    cases: dict[str, Case]
    seen: dict[str, Seen]

    @functools.cache  # noqa: B019 - there is one for all tests
    def differences(self, case: str) -> list[Finding]:
        """What differs once the case ran, and what only once its jobs had ended."""
        one, other = self.seen[KUBERAY], self.seen[MUSTER]
        running = list(findings(case, one.running[case], other.running[case]))
        known = {(found.key, found.path, str(found.kuberay), str(found.muster)) for found in running}
        ended = findings(case, one.ended[case], other.ended[case])
        return running + [
            found for found in ended if (found.key, found.path, str(found.kuberay), str(found.muster)) not in known
        ]


@pytest.fixture(scope="session")
def all_cases(request: pytest.FixtureRequest) -> dict[str, Case]:
    """Give every case by its name, also those that Muster lacks something for."""
    cases = [*samples(_build(request) / "config"), *rule_cases()]
    return {case.name: case for case in cases}


@pytest.fixture(scope="session")
def side_by_side(all_cases: dict[str, Case]) -> SideBySide:
    """Give what each operator made of every case that Muster has all for."""
    cases = {name: case for name, case in all_cases.items() if case.lacking() is None}
    return SideBySide(cases, run(list(cases.values())))


def _build(request: pytest.FixtureRequest) -> Path:
    """Build what is missing; return the folder of KubeRay's operator."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    try:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            build(Options())
            kuberay.operator_binary()
            return kuberay.source()
    except PrerequisiteError as error:
        refuse(f"the comparison with KubeRay needs {error}")
        raise
