"""The answer on manifests: worked out by the scheduler, and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.explain.answer import explain
from muster.explain.from_files import ray_state
from muster.explain.target import TargetError, parse_target
from muster.explain.text import as_text, duration
from muster.scheduler.conf import DEFAULT
from muster.simulator.manifests import read_manifests
from muster.simulator.model import build_model
from muster.simulator.simulation import Pace, Simulation
from muster.simulator.sources import read_sources
from tests.simulator import manifests
from tests.simulator.conftest import NOW
from tests.simulator.manifests import Manifest, gang, node, pod, pod_group

Objects = Manifest | list[Manifest]


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    def run(target: str, *objects: Objects) -> dict[str, Any]:
        file = tmp_path / "cluster.yaml"
        file.write_bytes(manifests.text(*objects))
        documents = read_sources([str(file)]).documents
        model = build_model(read_manifests(documents), ("muster",))
        wanted = parse_target(target, "default")
        return explain(Simulation(model, DEFAULT, Pace(NOW)), wanted, ray_state(documents, wanted))

    return run


def ray(kind: str, name: str, suspend: bool = False, **status: str) -> Manifest:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": meta, "spec": {"suspend": suspend}, "status": status}


def test_a_gang_that_waits_for_room(ask: Any) -> None:
    objects = [node("n1"), node("n2"), pod_group("r"), pod("r", "r", 3, node="n1"), gang("g", 2, cpu=4)]
    answer = ask("podgroup/g", *objects)
    reason = answer["reason"]
    assert (answer["source"], answer["phase"]) == ("scheduler", "Inqueue")
    assert (reason["code"], reason["resource"]) == ("NotEnoughNodes", "cpu")
    assert (reason["requested"], reason["free"]) == ("4", "1")
    assert reason["nearMiss"] == {"node": "n1", "lacks": "cpu 3"}
    assert reason["holders"] == [{"podGroup": "default/r", "queue": "default", "amount": "3", "reclaimable": True}]
    assert (reason["position"], reason["ahead"], reason["waited"]) == (1, 0, 0)
    assert answer["members"]["fitting"] == 1
    assert set(answer["members"]["failing"]) == {"g-w-1"}
    assert reason["suggestion"]["change"] == {"minMember": 1}
    assert [each["name"] for each in answer["queues"]] == ["default", "root"]


def test_who_lacks_pods_is_told_where_to_look(ask: Any) -> None:
    answer = ask("podgroup/g", node("n1"), pod_group("g", 3))
    assert answer["reason"]["advice"] == "wait"
    assert "see the events of who makes them" in as_text(answer)


def test_the_text_says_it_all_in_words(ask: Any) -> None:
    objects = [node("n1"), node("n2"), pod_group("r"), pod("r", "r", 3, node="n1"), gang("g", 2, cpu=4)]
    text = as_text(ask("podgroup/g", *objects))
    for part in (
        "podgroup default/g: PodGroup default/g, Inqueue",
        "It waits: 1 of 2 members have a place; g-w-0 needs cpu 4",
        "queue default, uses cpu 3",
        "  below root",
        "cpu: asked for 4, used 3, free 1, of 4",
        "members: 1 of 2 find a node",
        "closest: n1 lacks cpu 3",
        "in use by: default/r (queue default) cpu 3, can be taken back",
        "number 1 of those that wait in its queue (none before it); has waited 0s",
        "a node is added, freed or changed",
        "what would help: with 1 members instead of 2 it would be placed now",
        "advice: wait",
    ):
        assert part in text, part


def test_a_gang_that_would_be_placed_now(ask: Any) -> None:
    answer = ask("pod/g-w-0", node("n1"), gang("g", 1))
    assert answer["wouldBind"] == {"default/g-w-0": "n1"}
    assert "It is placed now: default/g-w-0 on n1." in as_text(answer)


def test_a_placed_gang_goes_on_to_what_its_pods_wait_for(ask: Any) -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    status = {"containerStatuses": [{"name": "main", "state": waiting}]}
    answer = ask("podgroup/g", node("n1"), pod_group("g"), pod("p", "g", node="n1", phase="Pending", status=status))
    assert answer["notReady"] == [
        {"pod": "default/p", "node": "n1", "waitsFor": "container main waits: ErrImagePull: no such image"}
    ]
    assert "reason" not in answer
    assert "It has its nodes. What is not ready yet:" in as_text(answer)


def test_a_ray_job_is_explained_by_its_gang(ask: Any) -> None:
    objects = [node("n1", cpu=1), pod_group("ray-job-pg"), pod("head", "ray-job-pg", 2), ray("RayJob", "job")]
    answer = ask("rayjob/job", *objects)
    assert answer["podGroup"] == "default/ray-job-pg"
    assert answer["reason"]["code"] == "LargerThanCluster"


def test_a_suspended_ray_job_says_so(ask: Any) -> None:
    answer = ask("rayjob/job", node("n1"), ray("RayJob", "job", suspend=True, jobDeploymentStatus="Suspended"))
    text = as_text(answer)
    assert "which does not exist" in text
    assert "suspended: set spec.suspend to false" in text
    assert "jobDeploymentStatus Suspended" in text


@pytest.mark.parametrize("target", ["podgroup/nothing", "rayjob/nothing", "pod/nothing"])
def test_what_is_not_there_is_said_to_be_missing(ask: Any, target: str) -> None:
    with pytest.raises(TargetError, match="nothing"):
        ask(target, node("n1"))


def test_a_pod_group_that_only_pods_name_is_explained_too(ask: Any) -> None:
    answer = ask("podgroup/missing", node("n1"), pod("p", "missing"))
    assert answer["reason"]["code"] == "PodGroupMissing"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (3600, "1h"), (3900, "1h5m"), (172800, "2d"), (180000, "2d2h")],
)
def test_times_are_short(seconds: int, words: str) -> None:
    assert duration(seconds) == words


def test_a_pod_that_was_handed_to_the_default_scheduler_is_placed_not_about_to_be(ask: Any) -> None:
    note = {"muster.dev/delegated-at": "2026-01-01T12:00:00Z"}
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    required = {"nodeSelectorTerms": [{"matchFields": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    member = pod("p", "g", scheduler="default-scheduler", annotations=note, affinity=affinity)
    answer = ask("podgroup/g", node("n1"), pod_group("g", phase="Inqueue"), member)
    assert "wouldBind" not in answer
    assert answer["notReady"] == [
        {"pod": "default/p", "node": "n1", "waitsFor": "default-scheduler has not bound it yet"}
    ]
