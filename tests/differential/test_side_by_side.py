"""Muster makes of a manifest what KubeRay makes of it, but for what docs/differences.md lists with its reason.

`-rs` shows what is not compared. A sample or rule that fails here either shows a fault of Muster's, or needs a row in
that document and its pattern in `listed.py`.
"""

from __future__ import annotations

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.differential.comparison import Difference, Finding, findings, unlisted
from tests.differential.conftest import SideBySide
from tests.differential.document import listed_samples
from tests.differential.listed import BY_CRDS, DIFFERENCES
from tests.differential.manifests import Case, Manifest
from tests.differential.normal_form import fields
from tests.differential.rule_cases import rule_cases
from tests.differential.run import KUBERAY, MUSTER

pytestmark = pytest.mark.control_plane

_SHOWN = 20
_ALL = [*listed_samples(), *(case.name for case in rule_cases())]


def test_every_sample_of_kuberay_is_in_the_document(all_cases: dict[str, Case]) -> None:
    samples = {name for name in all_cases if not name.startswith("rule: ")}
    assert samples == listed_samples().keys()


@pytest.mark.parametrize("name", _ALL)
def test_what_comes_of_it_is_the_same(name: str, all_cases: dict[str, Case], side_by_side: SideBySide) -> None:
    lacking = all_cases[name].lacking()
    listed = listed_samples().get(name, "yes") == "yes"
    if lacking is not None:
        assert not listed, f"the document says that it is compared, but Muster lacks {lacking}"
        pytest.skip(f"not compared: {lacking}")
    found = unlisted(side_by_side.differences(name), DIFFERENCES)
    if not listed:
        pytest.skip(f"Muster has all of {name} now; {len(found)} unlisted differences; say `yes` in the document")
    assert not found, told(found)


def test_a_manifest_is_the_same_object_under_musters_own_crds(
    side_by_side: SideBySide, control_plane: ControlPlane
) -> None:
    found: list[Finding] = []
    for case in side_by_side.cases.values():
        for manifest in case.ray_objects:
            key = f"{manifest['kind']} {manifest['metadata']['name']}"
            under_kuberays = side_by_side.seen[MUSTER].running[case.name][key]
            own = {key: fields(stored(control_plane, manifest)["spec"], "spec")}
            known = {key: {path: value for path, value in under_kuberays.items() if path.startswith("spec/")}}
            found += findings(case.name, known, own)
    assert not unlisted(found, BY_CRDS), told(unlisted(found, BY_CRDS))
    assert all(any(difference.covers(one) for one in found) for difference in BY_CRDS)


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda one: f"{one.what}: {one.objects[0]} {one.fields[0]}")
def test_a_listed_difference_is_there(difference: Difference, side_by_side: SideBySide) -> None:
    assert any(difference.covers(found) for name in side_by_side.cases for found in side_by_side.differences(name)), (
        "it no longer occurs: take it out of listed.py, and its row out of docs/differences.md"
    )


def test_both_operators_are_at_work(side_by_side: SideBySide) -> None:
    for side in (KUBERAY, MUSTER):
        running = side_by_side.seen[side].running["ray-job.sample"]
        ended = side_by_side.seen[side].ended["ray-job.sample"]
        (job,) = (key for key in running if key.startswith("RayJob "))
        assert running[job]["status/jobDeploymentStatus"] == "Running"
        assert ended[job]["status/jobDeploymentStatus"] == "Complete"
        assert sum(key.startswith("Pod ") for key in running) == 2


def stored(plane: ControlPlane, manifest: Manifest) -> Manifest:
    """What the API server would keep of the manifest."""
    path = f"/apis/ray.io/v1/namespaces/default/{manifest['kind'].lower()}s?dryRun=All"
    return plane.api.create(path, {**manifest, "metadata": {"name": manifest["metadata"]["name"]}})


def told(found: list[Finding]) -> str:
    """The first of the findings, one a line."""
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return "\n".join(["not listed:", *map(str, found[:_SHOWN]), *more])
