"""KubeRay's samples by Muster's rules, without a cluster."""

from __future__ import annotations

from tests.cluster import kuberay
from tests.cluster.prerequisites import PrerequisiteError
from tests.conftest import refuse
from tests.differential.manifests import problems, samples


def test_no_rule_refuses_a_sample_of_kuberays() -> None:
    try:
        cases = samples(kuberay.source() / "config")
    except PrerequisiteError as error:
        refuse(f"the comparison with KubeRay needs {error}")
        raise
    assert len(cases) > 50
    told = {case.name: [str(problem) for one in case.ray_objects for problem in problems(one)] for case in cases}
    assert {name: words for name, words in told.items() if words} == {}
