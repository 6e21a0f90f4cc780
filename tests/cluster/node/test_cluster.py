"""The life of a cluster, with stand-ins for kind, kubectl and the engine that write down how they are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.cache import Cache
from tests.cluster.node import cluster as module
from tests.cluster.node.cluster import NodeCluster
from tests.cluster.node.docker import Docker
from tests.cluster.node.supply import PublicSupply
from tests.cluster.process import CommandFailedError

PROGRAM = """#!/bin/sh
name=$(basename "$0")
echo "$name $*" >>"{folder}/calls"
[ -e "{folder}/$name-$1-fails" ] && {{ echo "$name $1 is broken" >&2; exit 1; }}
case "$name $1 $2" in
"kind get clusters") cat "{folder}/others" 2>/dev/null ;;
"kind create cluster")
  echo "of our own" >"$KUBECONFIG"
  if [ -e "{folder}/slow" ]; then for _ in $(seq 200); do [ -e "{folder}/loaded" ] || sleep 0.1; done; fi
  echo "created" >>"{folder}/calls" ;;
"kind load image-archive") touch "{folder}/loaded" ;;
"kind get nodes") echo "one-control-plane one-worker2 one-worker one-worker3" ;;
esac
exit 0
"""


class StandInSupply:
    """An engine that is there and images that need no building."""

    node_image: str | None = "node:1"
    ray_image = "ray:1"
    base_image = "base:1"
    ray_archive: Path | None = Path("/images/ray/1/image.tar")

    def __init__(self) -> None:
        self.docker = Docker("unix:///nowhere.sock")

    def engine_in_use(self) -> bool:
        return True

    def start_engine(self) -> None:
        pass

    def prepare_cluster(self) -> None:
        pass

    def prepare_base(self) -> None:
        pass

    def stop_engine(self) -> None:
        pass


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stand-ins: `calls` has one line a call; a file `kind-create-fails` makes that command fail."""
    for name in ("kind", "kubectl", "docker"):
        (tmp_path / name).write_text(PROGRAM.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "calls").touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(NodeCluster, "_program", lambda self, name: tmp_path / name)
    monkeypatch.setattr(module, "make_supply", lambda cache, steps, public: StandInSupply())
    monkeypatch.setattr(module, "images_are_public", lambda: False)
    monkeypatch.setattr(module, "_ADOPTION_SECONDS", 0.0)
    return tmp_path


def cluster(machine: Path, name: str = "one") -> NodeCluster:
    return NodeCluster(name, cache=Cache(machine / "cache"))


def calls(machine: Path, *beginnings: str) -> list[str]:
    """Return the calls so far that begin with one of the texts, and forget them all."""
    lines = (machine / "calls").read_text().splitlines()
    (machine / "calls").write_text("")
    return [line for line in lines if line.startswith(beginnings)]


def test_a_cluster_is_made_from_the_repositorys_configuration_and_its_workers_get_ray(machine: Path) -> None:
    started = cluster(machine)
    started.start()
    assert sorted(calls(machine, "kind create", "kind load")) == [
        f"kind create cluster --config={module.CONFIGURATION} --image=node:1 --name=one",
        "kind load image-archive /images/ray/1/image.tar --nodes=one-worker,one-worker2,one-worker3 --name=one",
    ]
    assert started.kubeconfig.read_text() == "of our own\n"
    started.stop()
    assert calls(machine, "kind ") == ["kind delete cluster --name=one"]
    assert not started.kubeconfig.exists()


def test_workers_get_ray_as_soon_as_they_take_images_while_they_still_join(machine: Path) -> None:
    (machine / "slow").touch()
    cluster(machine).start(keep=True)
    assert [call.split()[0:2] for call in calls(machine, "kind load", "created")] == [["kind", "load"], ["created"]]


def test_images_wait_for_workers_whose_runtimes_do_not_answer(machine: Path) -> None:
    (machine / "docker-exec-fails").touch()
    cluster(machine).start(keep=True)
    assert [call.split()[0:2] for call in calls(machine, "kind load", "created")] == [["created"], ["kind", "load"]]


def test_a_start_that_fails_takes_back_what_it_has_made(machine: Path) -> None:
    (machine / "kind-load-fails").touch()
    with pytest.raises(CommandFailedError, match="kind load is broken"):
        cluster(machine).start()
    assert calls(machine, "kind ")[-1] == "kind delete cluster --name=one"
    assert not list((machine / "cache").glob("runs/*"))


def test_a_kept_cluster_is_taken_as_it_is_and_stopped_by_whoever_knows_its_name(machine: Path) -> None:
    cluster(machine).start(keep=True)
    calls(machine)
    again = cluster(machine)
    again.start(reuse=True)
    assert calls(machine, "kind ") == []
    assert again.kubeconfig.exists()
    cluster(machine).stop()
    assert calls(machine, "kind ") == ["kind delete cluster --name=one"]


def test_a_kept_cluster_that_does_not_become_healthy_is_made_anew(machine: Path) -> None:
    cluster(machine).start(keep=True)
    calls(machine)
    kubectl = machine / "kubectl"
    kubectl.write_text(f'#!/bin/sh\ngrep -q "kind create" {machine}/calls\n')
    cluster(machine).start(reuse=True)
    made = calls(machine, "kind delete", "kind create")
    assert [call.split()[1] for call in made] == ["delete", "create"]


class StandInPublicSupply(StandInSupply, PublicSupply):
    """The same on an engine that is the user's."""


def test_a_users_cluster_of_the_same_name_is_left_alone(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "make_supply", lambda cache, steps, public: StandInPublicSupply())
    (machine / "others").write_text("one\n")
    with pytest.raises(CommandFailedError, match="kind cluster one that was not made here"):
        cluster(machine).start()
    assert calls(machine, "kind create", "kind delete") == []
    assert not list((machine / "cache").glob("runs/*"))


@pytest.mark.parametrize("name", ["one", "two"])
def test_the_cluster_of_a_killed_run_is_removed_by_the_next_start_of_any(machine: Path, name: str) -> None:
    dead = machine / "cache/runs/node-dead"
    dead.mkdir(parents=True)
    (dead / "cluster.json").write_text(json.dumps({"name": "one", "public": False}))
    started = cluster(machine, name)
    started.start()
    made = calls(machine, "kind delete", "kind create")
    assert [call.split()[1] for call in made] == ["delete", "create"]
    assert made[0] == "kind delete cluster --name=one"
    assert not dead.exists()
    started.stop()


def test_a_run_that_was_killed_before_it_made_anything_is_forgotten(machine: Path) -> None:
    dead = machine / "cache/runs/node-dead"
    dead.mkdir(parents=True)
    (dead / "cluster.json").write_text('{"name": "on')
    started = cluster(machine)
    started.start()
    assert not dead.exists()
    assert not calls(machine, "kind delete")
    started.stop()


def test_status_says_that_there_is_no_cluster_or_that_it_does_not_answer(machine: Path) -> None:
    assert cluster(machine).status() is None
    cluster(machine).start(keep=True)
    assert "no nodes" in (cluster(machine).status() or "")
    (machine / "kubectl").write_text("#!/bin/sh\nexit 1\n")
    assert "does not answer" in (cluster(machine).status() or "")
