"""The builds, with a stand-in for Go that writes down what it is asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster import gobuild, versions
from tests.cluster.binaries import MODULE, PROGRAMS, REQUIREMENTS
from tests.cluster.cache import Cache
from tests.cluster.gobuild import go_binaries, is_built
from tests.cluster.prerequisites import PrerequisiteError
from tests.cluster.process import CommandFailedError

# Answers `go env`, and makes the files that `go build -o FOLDER/ PACKAGE ...` names.
_GO = """#!/bin/bash
echo "$PWD $CGO_ENABLED $*" >> "$(dirname "$0")/calls"
case "$1" in
  env) echo go1.26.8; echo local;;
  build)
    [ ! -e "$(dirname "$0")/broken" ] || { echo "undefined: x" >&2; exit 1; }
    while [ "$1" != -o ]; do shift; done
    target="$2"; shift 2
    for package in "$@"; do echo "$package" > "$target${package##*/}"; done;;
esac
"""


class FakeGo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "go").write_text(_GO)
        (folder / "go").chmod(0o755)

    def builds(self) -> list[str]:
        """Return the calls of `go build`, with folder and environment in front."""
        file = self.folder / "calls"
        return [line for line in file.read_text().splitlines() if " build " in line] if file.exists() else []


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return FakeGo(folder)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_programs_of_all_modules_are_built_by_one_call(go: FakeGo, cache: Cache) -> None:
    found = go_binaries(["kubelet", "kind", "etcd"], cache=cache)
    assert {name: path.read_text().strip() for name, path in found.items()} == {
        "kubelet": "k8s.io/kubernetes/cmd/kubelet",
        "kind": "sigs.k8s.io/kind",
        "etcd": "muster.dev/programs/etcd",
    }
    (build,) = go.builds()
    assert build.startswith(f"{MODULE} 0 ")
    assert f"-X k8s.io/component-base/version.gitVersion={versions.KUBERNETES}" in build


def test_what_is_built_is_not_built_again_even_without_go(go: FakeGo, cache: Cache) -> None:
    first = go_binaries(["etcd", "kubectl"], cache=cache)
    (go.folder / "go").unlink()
    assert is_built(["etcd", "kubectl"], cache=cache)
    assert go_binaries(["etcd", "kubectl"], cache=cache) == first


def test_only_what_is_missing_is_built(go: FakeGo, cache: Cache) -> None:
    go_binaries(["kubectl"], cache=cache)
    assert not is_built(["kubectl", "kubelet"], cache=cache)
    go_binaries(["kubectl", "kubelet"], cache=cache)
    assert [call.split()[-1].rpartition("/")[2] for call in go.builds()] == ["kubectl", "kubelet"]


def test_programs_of_an_old_recipe_go_but_for_the_last(
    go: FakeGo, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = []
    for recipe in ("first", "second", "third"):
        monkeypatch.setattr(gobuild, "RECIPE", recipe)
        folders.append(go_binaries(["kubectl"], cache=cache)["kubectl"].parent)
    assert [folder.exists() for folder in folders] == [False, True, True]


def test_a_failed_build_shows_gos_words_and_leaves_nothing(go: FakeGo, cache: Cache) -> None:
    (go.folder / "broken").touch()
    with pytest.raises(CommandFailedError, match="undefined: x"):
        go_binaries(["etcd"], cache=cache)
    assert [path for path in (cache.root / "programs").rglob("*") if path.is_file()] == []
    (go.folder / "broken").unlink()
    assert go_binaries(["etcd"], cache=cache)["etcd"].exists()


def test_without_go_the_remedy_is_named(cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PrerequisiteError, match=r"Go 1\.24 or later"):
        go_binaries(["etcd"], cache=cache)


def test_an_unknown_program_is_refused(cache: Cache) -> None:
    with pytest.raises(KeyError, match="kubefoo"):
        go_binaries(["kubefoo"], cache=cache)


@pytest.mark.parametrize(("name", "package"), PROGRAMS.items(), ids=list(PROGRAMS))
def test_a_program_is_named_as_go_names_it(name: str, package: str) -> None:
    assert package.endswith(f"/{name}")


def test_the_go_module_is_locked_to_the_pinned_versions() -> None:
    required = dict(re.findall(r"^\t(\S+) (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE))
    assert {module: required[module] for module in REQUIREMENTS} == REQUIREMENTS


def test_the_go_module_asks_for_no_newer_go_than_the_harness() -> None:
    found = re.search(r"^go (\d+)\.(\d+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert found is not None
    assert (int(found[1]), int(found[2])) == versions.GO_MINIMUM


@pytest.mark.parametrize("change", ["etcd/main.go", "go.sum", "go.mod", "new/main.go"])
def test_any_change_of_the_go_module_is_another_recipe(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("go.mod", "go.sum", "etcd/main.go"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("before")
    monkeypatch.setattr(gobuild, "MODULE", tmp_path)
    before = gobuild.recipe()
    (tmp_path / change).parent.mkdir(exist_ok=True)
    (tmp_path / change).write_text("after")
    assert gobuild.recipe() != before
