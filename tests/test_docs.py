"""What the documents say about names in the code is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import pytest
import yaml

from muster.scheduler.conf import DEFAULT, load_configuration
from muster.scheduler.plugin import Plugin
from muster.scheduler.plugins.arguments import integer
from muster.scheduler.reasons import Code
from muster.simulator.manifests import read_manifests
from muster.simulator.model import build_model
from muster.simulator.simulation import Pace, Simulation
from muster.simulator.sources import read_sources

REPOSITORY = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| (\w+) \| `(\w+)` \|", re.MULTILINE)
EXAMPLE = re.compile(r"^```yaml\n(actions: .*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.MULTILINE)


def test_every_reason_is_documented_with_its_class_and_no_other() -> None:
    documented = {code: kind for kind, code in ROW.findall((REPOSITORY / "docs" / "reasons.md").read_text())}
    assert documented == {code.value: code.reason_class.value for code in Code}


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in REPOSITORY.glob("docs/*.md"))]
)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    folder = (REPOSITORY / document).parent
    broken = [link for link in LINK.findall((REPOSITORY / document).read_text()) if not (folder / link).exists()]
    assert broken == []


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_that_a_document_names_exists(document: str) -> None:
    targets = set(TARGET.findall((REPOSITORY / "Makefile").read_text()))
    named = set(re.findall(r"make ([a-z][a-z-]+)", (REPOSITORY / document).read_text())) - {"it"}
    assert named <= targets


@pytest.mark.parametrize("document", ["docs/extender.md", "docs/plugins.md"])
def test_the_configurations_in_a_document_can_be_used(document: str) -> None:
    examples = EXAMPLE.findall((REPOSITORY / document).read_text())
    assert examples
    for text in examples:
        load_configuration(yaml.safe_load(text), {"price": lambda: Price})


class Price(Plugin):
    """Stands in for the plugin that docs/plugins.md shows how to write."""

    name = "price"
    arguments: ClassVar = {"price.weight": integer}


def test_the_example_of_a_simulation_has_a_gang_that_fits_and_one_that_waits() -> None:
    example = str(REPOSITORY / "docs/examples/simulation.yaml")
    model = build_model(read_manifests(read_sources([example]).documents), ("muster",))
    outcome = Simulation(model, DEFAULT, Pace(1767225700.0)).cycle()
    assert {each.pod for each in outcome.bindings} == {"small-0", "small-1"}
    assert outcome.pod_groups["default/large"].reason is not None
