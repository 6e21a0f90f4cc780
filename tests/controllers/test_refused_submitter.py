"""What a user is told of a submitter whose pod is refused, and whether it can heal."""

from __future__ import annotations

import math

import pytest

from muster.controllers.rayjob.refused_submitter import RefusedSubmitter


@pytest.mark.parametrize(
    ("why", "advice", "hopeless_from"),
    [
        ('pods "demo-…" is forbidden: exceeded quota: few', "make room in the quota", math.inf),
        ('pods "demo-…" is forbidden: violates PodSecurity', "spec.submitterPodTemplate", 1030.0),
        ('admission webhook "policy" denied the request', "spec.submitterPodTemplate", 1030.0),
    ],
)
def test_only_a_quota_may_yet_have_room(why: str, advice: str, hopeless_from: float) -> None:
    found = RefusedSubmitter("demo", why, made=1000.0)
    assert why in found.sentence
    assert advice in found.sentence
    assert found.hopeless_from == hopeless_from
