"""Plugins that another package brings, by the example in docs/plugins.md."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.engine.configuration_source import read_configuration
from muster.engine.installed_plugins import GROUP, installed_plugins
from muster.scheduler.conf import ConfigurationError
from muster.testing import Cluster, bindings, gang, node

DOCUMENT = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text()


def example(language: str) -> str:
    """The example's part in this language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return str(found)


def entry_points() -> dict[str, str]:
    declared: dict[str, str] = tomllib.loads(example("toml"))["project"]["entry-points"][GROUP]
    return declared


def install(where: Path, distribution: str, points: dict[str, str]) -> None:
    """What an installer leaves behind: a module, and metadata with entry points."""
    metadata = where / f"{distribution}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages with the example in it."""
    (tmp_path / "example_price.py").write_text(example("python"))
    install(tmp_path, "example_price", entry_points())
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("example_price", None)


def conf(site: Path, text: str) -> Path:
    path = site / "scheduler.yaml"
    path.write_text(text)
    return path


def test_the_example_in_the_documentation_works_as_it_stands(site: Path) -> None:
    cluster = Cluster.of(
        node("dear", labels={"example.com/price": "9"}),
        node("mean", labels={"example.com/price": "6"}),
        node("cheap", labels={"example.com/price": "3"}),
        gang("demo", 1),
        configuration=read_configuration(conf(site, example("yaml"))),
    )
    assert bindings(cluster.cycle()) == {"demo-w-0": "cheap"}


def test_a_package_is_imported_only_when_its_plugin_is_named(site: Path) -> None:
    read_configuration(
        conf(site, example("yaml").replace("  - name: price\n    arguments:\n      price.weight: 3\n", ""))
    )
    assert "price" in installed_plugins()
    assert "example_price" not in sys.modules


def test_a_wrong_argument_is_refused_by_its_place_in_the_file(site: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=re.escape("tiers[1].plugins[2].arguments.price.weight: must be a whole")
    ):
        read_configuration(conf(site, example("yaml").replace("weight: 3", "weight: much")))


def test_a_package_that_can_not_be_imported_is_refused_by_the_name_of_its_plugin(site: Path) -> None:
    (site / "example_price.py").write_text("import no_such_module\n")
    with pytest.raises(ConfigurationError, match=r"plugin 'price' can't be loaded: .*no_such_module"):
        read_configuration(conf(site, example("yaml")))


def test_two_packages_with_one_name_are_refused(site: Path) -> None:
    install(site, "another_price", entry_points())
    with pytest.raises(ConfigurationError, match="more than one installed package"):
        read_configuration(conf(site, example("yaml")))


def test_a_plugin_that_is_not_installed_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="unknown plugin 'price'"):
        read_configuration(conf(tmp_path, example("yaml")))
