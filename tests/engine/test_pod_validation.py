"""What no pod can ask for is refused where no API server has looked: in companions and in simulated pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muster.engine.amounts import TranslationError
from muster.engine.pod_specs import task_spec
from muster.engine.pod_validation import check_placement
from muster.kube.objects import PodSpec
from tests.engine.placements import ALLOWED, REFUSED, spread
from tests.engine.pod_manifests import pod


@pytest.mark.parametrize(("spec", "path"), REFUSED, ids=[f"{index} {path}" for index, (_, path) in enumerate(REFUSED)])
def test_what_no_pod_can_ask_for_is_refused_with_its_field(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(TranslationError) as caught:
        check_placement(msgspec.convert(spec, type=PodSpec), "spec")
    assert caught.value.path == f"spec.{path}"


@pytest.mark.parametrize("spec", ALLOWED)
def test_what_a_pod_can_ask_for_passes(spec: dict[str, Any]) -> None:
    check_placement(msgspec.convert(spec, type=PodSpec), "spec")


def test_a_pod_that_an_api_server_let_pass_is_counted_all_the_same() -> None:
    """Its room is taken: an older API server may have known other rules."""
    found = task_spec(pod(node="n", phase="Running", **spread(maxSkew=0)), scheduler_names=("muster",), gate="g")
    assert found is not None
    assert found.node == "n"
