"""How a system is named or described on the command line, and what its pods look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from bench.manifests import gang_pod, pod_group
from bench.systems import SYSTEMS, Grouping, parse

VOLCANO = (
    "name=volcano schedulerName=volcano groupAnnotation=scheduling.k8s.io/group-name crds=volcano/crds "
    "command='vc-scheduler --kubeconfig={kubeconfig} --conf \"{folder}/a b.yaml\" --tiers=1,2'"
)


def test_a_system_of_the_users_own() -> None:
    volcano = parse(VOLCANO)
    assert (volcano.name, volcano.scheduler_name, volcano.gate, volcano.bare) == ("volcano", "volcano", "", False)
    assert volcano.grouping == Grouping("scheduling.volcano.sh/v1beta1", annotation="scheduling.k8s.io/group-name")
    assert volcano.crds() == [Path("volcano/crds")]
    words = ["vc-scheduler", "--kubeconfig=/run/kubeconfig", "--conf", "/run/a b.yaml", "--tiers=1,2"]
    assert volcano.command(Path("/run/kubeconfig"), Path("/run")) == words


@pytest.mark.parametrize("name", [each.name for each in SYSTEMS])
def test_the_systems_that_are_there_go_by_their_names(name: str) -> None:
    assert parse(name).name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("voclano", r"'voclano' is no system; there are ceiling, .*coscheduling, and any other as name=… command=…"),
        ("name=x command=y", r"a system needs schedulerName=…"),
        ("name=x schedulerName=s", r"a system needs command=…"),
        ("command=y schedulerName=s", r"a system needs name=…"),
        ("name=x command=y schedulerName=s group=z", r"'group=z' in a system is none of name=…, .*crds=…"),
        ("name=x command=y --flag schedulerName=s", r"'--flag' in a system is none of .*quote a value that has spaces"),
        ("name=x command='y", r"No closing quotation"),
        ("name=muster command=y schedulerName=s", r"name=muster is taken"),
        ("name=x command=y schedulerName=s groupLabel=l groupAnnotation=a", r"not both"),
        ("name=x command=y schedulerName=s groupLabel=l podGroups=v1", r"podGroups=v1 is not GROUP/VERSION"),
    ],
)
def test_a_wrong_description_is_refused_with_the_word_that_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--system", "voclano"], "argument --system: 'voclano' is no system"),
        (["--scenario", "2x2"], "argument --scenario: '2x2' is no scenario"),
        (["--mode", "slow"], "argument --mode: invalid"),
        (["--scale", "0"], "argument --scale: '0' is not a number above 0"),
        (["--runs", "1.5"], "argument --runs: '1.5' is not a number above 0"),
        (["--pace", "inf"], "argument --pace: 'inf' is not a number above 0"),
    ],
)
def test_bad_usage_names_the_option(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def members(name: str) -> dict[str, Any]:
    return gang_pod(parse(name), "g1", 0)


def test_pods_say_which_gang_they_are_of_as_the_system_wants_it() -> None:
    muster, ungated, alone, labelled = map(members, ("muster", "muster-ungated", "kube-scheduler", "coscheduling"))
    assert muster["spec"]["schedulerName"] == "muster"
    assert muster["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
    assert muster["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "g1"}
    assert ungated["spec"]["schedulerName"] == "volcano"
    assert "schedulingGates" not in ungated["spec"]
    assert ungated["metadata"]["annotations"] == {"scheduling.k8s.io/group-name": "g1"}
    assert "annotations" not in alone["metadata"]
    assert labelled["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "g1"
    assert {pod["metadata"]["labels"]["bench.muster.dev/gang"] for pod in (muster, alone, labelled)} == {"g1"}


def test_a_pod_group_asks_for_all_its_pods() -> None:
    system = parse("muster")
    assert pod_group(system, "g1", 3)["spec"] == {"minMember": 3, "minResources": {"cpu": "3", "memory": "3Gi"}}
    assert pod_group(system, "g1", 3, with_resources=False)["spec"] == {"minMember": 3}


def test_gated_gangs_name_a_controller_as_those_of_ray_clusters_do_and_the_ceiling_has_the_same_ones() -> None:
    gated, ungated = parse("muster"), parse("muster-ungated")
    (owner,) = gang_pod(gated, "g1", 0)["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"], owner["controller"]) == (
        "ray.io/v1",
        "RayCluster",
        "g1",
        True,
    )
    assert pod_group(gated, "g1", 3)["metadata"]["ownerReferences"] == [owner]
    assert "ownerReferences" not in gang_pod(ungated, "g1", 0)["metadata"]
    assert "ownerReferences" not in pod_group(ungated, "g1", 3)["metadata"]
    for system, ceiling in ((gated, parse("ceiling")), (ungated, parse("ceiling-ungated"))):
        assert pod_group(ceiling, "g1", 3) == pod_group(system, "g1", 3)
        pod = gang_pod(system, "g1", 0)
        assert gang_pod(ceiling, "g1", 0) == {**pod, "spec": {**pod["spec"], "schedulerName": "bench"}}
