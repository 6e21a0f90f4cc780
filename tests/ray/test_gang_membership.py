"""Who binds a pod of a gang, and whether it is held back until the gang has a place."""

from __future__ import annotations

from typing import Any

import pytest

from muster.ray.gang_membership import GangMembership

GATES = [{"name": "muster.dev/gang"}]
CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}

CASES: dict[str, tuple[dict[str, Any], str | None, list[dict[str, str]] | None]] = {
    "a plain pod": ({}, "muster", GATES),
    "one that names Volcano": ({"schedulerName": "volcano"}, "muster", GATES),
    "one that claims devices": (CLAIMS, "default-scheduler", GATES),
    "one that claims devices and says by whom": (
        {**CLAIMS, "schedulerName": "default-scheduler"},
        "default-scheduler",
        GATES,
    ),
    "one that claims devices and names us": ({**CLAIMS, "schedulerName": "muster"}, "default-scheduler", GATES),
    "one that claims devices and names its node": ({**CLAIMS, "nodeName": "n1"}, "muster", None),
    "one of the default scheduler": ({"schedulerName": "default-scheduler"}, "default-scheduler", None),
    "one of a third": ({**CLAIMS, "schedulerName": "third"}, "third", None),
}


@pytest.mark.parametrize(("template", "scheduler", "gates"), CASES.values(), ids=CASES.keys())
def test_a_member_names_who_binds_it_and_is_held_back_if_it_can_be(
    template: dict[str, Any], scheduler: str, gates: list[dict[str, str]] | None
) -> None:
    pod: dict[str, Any] = {"metadata": {}, "spec": dict(template)}
    gang = GangMembership("pg")
    gang.join(pod, "workers")
    assert (pod["spec"]["schedulerName"], pod["spec"].get("schedulingGates")) == (scheduler, gates)
    # What was made says the same of itself as its template did.
    assert (gang.why_ungated(pod["spec"]) is None) is (gates is not None)


def test_under_another_scheduler_that_one_has_all_pods() -> None:
    pod: dict[str, Any] = {"metadata": {}, "spec": dict(CLAIMS)}
    GangMembership("pg", scheduler_name="volcano", gate=None).join(pod, "workers")
    assert pod["spec"]["schedulerName"] == "volcano"
    assert "schedulingGates" not in pod["spec"]
