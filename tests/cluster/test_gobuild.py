"""The builds, with a stand-in for Go that writes down what it is asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster import versions
from tests.cluster.binaries import GROUPS, ModuleGroup, group_of
from tests.cluster.cache import Cache
from tests.cluster.gobuild import go_binaries, is_built
from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError

_GO_MOD = """module k8s.io/kubernetes
replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/client-go => ./staging/src/k8s.io/client-go
\texample.com/other => example.com/other v1.2.3
)
"""

# Answers `go env` and `go mod download -json`, and makes the file or files that `go build -o` names.
_GO = """#!/bin/bash
echo "$PWD $CGO_ENABLED $*" >> "$(dirname "$0")/calls"
case "$1 $2" in
  "env GOVERSION") echo go1.26.8; echo local;;
  "mod download") echo "{\\"GoMod\\": \\"$(dirname "$0")/kubernetes.mod\\"}";;
  "build -trimpath")
    [ ! -e "$(dirname "$0")/broken" ] || { echo "undefined: x" >&2; exit 1; }
    target="$6"; shift 6
    case "$target" in
      */) for package in "$@"; do echo "$package" > "$target${package##*/}"; done;;
      *) echo "$1" > "$target";;
    esac;;
esac
"""


class FakeGo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "go").write_text(_GO)
        (folder / "go").chmod(0o755)
        (folder / "kubernetes.mod").write_text(_GO_MOD)

    def calls(self, verb: str) -> list[str]:
        """Return the calls of this verb, without folder and environment, of all until now."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [found[1] for line in lines if (found := re.match(rf"\S+ 0 ({verb} .*)", line))]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return FakeGo(folder)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_programs_of_one_module_are_built_by_one_call(go: FakeGo, cache: Cache) -> None:
    found = go_binaries(["kubelet", "kubectl"], cache=cache)
    assert {name: path.read_text().strip() for name, path in found.items()} == {
        "kubelet": "k8s.io/kubernetes/cmd/kubelet",
        "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    }
    (build,) = go.calls("build")
    assert f"-X k8s.io/component-base/version.gitVersion={versions.KUBERNETES}" in build


def test_a_single_program_gets_its_own_name_not_its_packages(go: FakeGo, cache: Cache) -> None:
    path = go_binaries(["etcd"], cache=cache)["etcd"]
    assert path.name == "etcd"
    assert path.read_text().strip() == "go.etcd.io/etcd/server/v3"


def test_what_is_built_is_not_built_again_even_without_go(go: FakeGo, cache: Cache) -> None:
    first = go_binaries(["etcd", "kubectl"], cache=cache)
    (go.folder / "go").unlink()
    assert is_built(["etcd", "kubectl"], cache=cache)
    assert go_binaries(["etcd", "kubectl"], cache=cache) == first


def test_only_what_is_missing_is_built(go: FakeGo, cache: Cache) -> None:
    go_binaries(["kubectl"], cache=cache)
    assert not is_built(["kubectl", "kubelet"], cache=cache)
    go_binaries(["kubectl", "kubelet"], cache=cache)
    assert [call.split()[-1].rpartition("/")[2] for call in go.calls("build")] == ["kubectl", "kubelet"]
    assert len(go.calls("get")) == 1


def test_libraries_inside_kubernetes_own_repository_are_replaced_by_their_published_versions(
    go: FakeGo, cache: Cache
) -> None:
    go_binaries(["kubectl"], cache=cache)
    (edit,) = go.calls("mod edit")
    staged = versions.KUBERNETES.replace("v1.", "v0.", 1)
    assert edit == (
        f"mod edit -require=k8s.io/kubernetes@{versions.KUBERNETES}"
        f" -replace=k8s.io/api=k8s.io/api@{staged} -replace=k8s.io/client-go=k8s.io/client-go@{staged}"
    )


def test_a_failed_build_shows_gos_words_and_leaves_nothing(go: FakeGo, cache: Cache) -> None:
    (go.folder / "broken").touch()
    with pytest.raises(CommandFailedError, match="undefined: x"):
        go_binaries(["etcd"], cache=cache)
    assert [path for path in (cache.root / "programs").rglob("*") if path.is_file()] == []
    (go.folder / "broken").unlink()
    assert go_binaries(["etcd"], cache=cache)["etcd"].exists()


def test_without_go_the_remedy_is_named(cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match=r"Go 1\.26 or later"):
        go_binaries(["etcd"], cache=cache)


def test_an_unknown_program_is_refused(cache: Cache) -> None:
    with pytest.raises(KeyError, match="kubefoo"):
        go_binaries(["kubefoo"], cache=cache)


def test_every_program_belongs_to_one_group() -> None:
    names = [name for group in GROUPS for name in group.programs]
    assert len(names) == len(set(names)) == 12
    assert all(name in group_of(name).programs for name in names)


@pytest.mark.parametrize("group", [group for group in GROUPS if len(group.programs) > 1], ids=lambda group: group.name)
def test_programs_built_together_are_named_after_their_packages(group: ModuleGroup) -> None:
    for name, package in group.programs.items():
        assert package.endswith(f"/{name}")
