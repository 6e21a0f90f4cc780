from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import pytest

from muster.scheduler.conf import DEFAULT, FLAGS, ConfigurationError, SchedulerConfiguration, load_configuration
from muster.scheduler.framework import Plugin
from muster.scheduler.plugins import PLUGINS
from muster.scheduler.plugins.arguments import integer
from muster.scheduler.plugins.extender.options import ExtenderOptions, Point


def document(**changes: Any) -> dict[str, Any]:
    return {"actions": "enqueue, allocate", "tiers": [{"plugins": [{"name": "gang"}]}], **changes}


def with_plugin(**plugin: Any) -> dict[str, Any]:
    return document(tiers=[{"plugins": [{"name": "priority"}, plugin]}])


EXTENDER = "tiers[0].plugins[1].arguments.extender"


def extender(**arguments: Any) -> dict[str, Any]:
    return with_plugin(name="extender", arguments={f"extender.{key}": value for key, value in arguments.items()})


@pytest.mark.parametrize(
    ("given", "field", "word"),
    [
        (None, "", "empty"),
        ([], "", "mapping"),
        ({}, "actions", "nothing"),
        (document(actions=""), "actions", "actions"),
        (document(actions="enqueue, alocate"), "actions", "alocate"),
        (document(actions="enqueue, elect"), "actions", "unknown action"),
        (document(actions=["enqueue"]), "actions", "commas"),
        (document(tiers=None), "tiers", "list"),
        (document(tiers=[{}]), "tiers[0].plugins", "list"),
        (document(tiers=[[]]), "tiers[0]", "mapping"),
        (document(tier=[]), "tier", "not known"),
        (with_plugin(name="gangs"), "tiers[0].plugins[1].name", "gangs"),
        (with_plugin(name="numaaware"), "tiers[0].plugins[1].name", "numaaware' of Volcano"),
        (with_plugin(name="priority"), "tiers[0].plugins", "twice"),
        (with_plugin(), "tiers[0].plugins[1].name", "None"),
        (with_plugin(name="gang", enableJobOder=True), "tiers[0].plugins[1].enableJobOder", "not known"),
        (with_plugin(name="gang", enableJobOrder="yes"), "tiers[0].plugins[1].enableJobOrder", "true or false"),
        (
            document(tiers=[{"plugins": [{"name": "drf", "enableHierarchy": True}, {"name": "proportion"}]}]),
            "tiers[0].plugins[0].enableHierarchy",
            "proportion",
        ),
        (
            with_plugin(name="capacity", arguments={"ancestorReclaimLevel": "one"}),
            "tiers[0].plugins[1].arguments.ancestorReclaimLevel",
            "whole number",
        ),
        (
            with_plugin(name="capacity", arguments={"capacity.DynamicResourceAllocationEnable": True}),
            "tiers[0].plugins[1].arguments.capacity.DynamicResourceAllocationEnable",
            "not supported yet",
        ),
        (
            with_plugin(name="overcommit", arguments={"overcommit-factor": "much"}),
            "tiers[0].plugins[1].arguments.overcommit-factor",
            "number",
        ),
        (
            with_plugin(name="overcommit", arguments={"factor": 1}),
            "tiers[0].plugins[1].arguments.factor",
            "not an argument",
        ),
        (
            with_plugin(name="nodeorder", arguments={"leastrequested.weight": 1.5}),
            "tiers[0].plugins[1].arguments.leastrequested.weight",
            "whole number",
        ),
        (
            with_plugin(name="predicates", arguments={"predicate.DynamicResourceAllocationEnable": True}),
            "tiers[0].plugins[1].arguments.predicate.DynamicResourceAllocationEnable",
            "not supported yet",
        ),
        (
            with_plugin(name="predicates", arguments={"predicate.NodeAffinityEnable": "perhaps"}),
            "tiers[0].plugins[1].arguments.predicate.NodeAffinityEnable",
            "true or false",
        ),
        (
            with_plugin(name="binpack", arguments={"binpack.resources.": 1}),
            "tiers[0].plugins[1].arguments.binpack.resources.",
            "not an argument",
        ),
        (
            with_plugin(name="binpack", arguments={"binpack.resources": "a", "binpack.resources.a": "much"}),
            "tiers[0].plugins[1].arguments.binpack.resources.a",
            "whole number",
        ),
        (
            with_plugin(name="resource-strategy-fit", arguments={"resources": {"cpu": {"type": "Least"}}}),
            "tiers[0].plugins[1].arguments.resources",
            "cpu: type: must be LeastAllocated or MostAllocated",
        ),
        (
            with_plugin(name="resource-strategy-fit", arguments={"resources": {"*": {}}}),
            "tiers[0].plugins[1].arguments",
            "asterisk",
        ),
        (
            with_plugin(name="resource-strategy-fit", arguments={"sra": {"enabled": True}}),
            "tiers[0].plugins[1].arguments.sra",
            "enabled is not known",
        ),
        (extender(predicateVerb="predicate"), "tiers[0].plugins[1].arguments", "extender.urlPrefix is missing"),
        (extender(urlPrefix="extender:80"), f"{EXTENDER}.urlPrefix", "must be an address such as http"),
        (extender(urlPrefix="ftp://extender"), f"{EXTENDER}.urlPrefix", "must be an address such as http"),
        (extender(urlPrefix="http://[x"), f"{EXTENDER}.urlPrefix", "must be an address such as http"),
        (extender(urlPrefix="http://x:port"), f"{EXTENDER}.urlPrefix", "must be an address such as http"),
        (extender(urlPrefix=8080), f"{EXTENDER}.urlPrefix", "must be an address such as http"),
        (extender(httpTimeout=100), f"{EXTENDER}.httpTimeout", "must be a time"),
        (extender(httpTimeout="0s"), f"{EXTENDER}.httpTimeout", "longer than nothing"),
        (extender(predicateVerb=["predicate"]), f"{EXTENDER}.predicateVerb", "must be text"),
        (extender(predicateVerb=None), f"{EXTENDER}.predicateVerb", "must be text"),
        (extender(ignorable="maybe"), f"{EXTENDER}.ignorable", "true or false"),
        (extender(managedResources={"a": 1}), f"{EXTENDER}.managedResources", "names separated by commas"),
        (extender(bindVerb="bind"), f"{EXTENDER}.bindVerb", "not an argument"),
        (document(configurations=[{"name": "elect"}]), "configurations[0].name", "elect"),
        (document(metrics={"address": []}), "metrics.address", "text"),
        (
            {**with_plugin(name="usage"), "metrics": {"type": "elasticsearch", "address": "x"}},
            "metrics.type",
            "elasticsearch",
        ),
        (
            document(configurations=[{"name": "allocate", "arguments": {"x": 1}}]),
            "configurations[0].arguments.x",
            "not an argument",
        ),
    ],
)
def test_what_is_not_understood_is_refused_and_the_field_named(given: object, field: str, word: str) -> None:
    with pytest.raises(ConfigurationError, match=word) as caught:
        load_configuration(given)
    assert caught.value.field == field


@pytest.mark.parametrize("flag", sorted(FLAGS))
def test_every_flag_of_volcano_is_understood(flag: str) -> None:
    loaded = load_configuration(with_plugin(name="gang", **{flag: flag != "enableHierarchy"}))
    assert loaded.tiers[0][1].flags == {flag: flag != "enableHierarchy"}


class Greedy(Plugin):
    """A plugin of another package."""

    name: ClassVar[str] = "greedy"
    arguments: ClassVar = {"hunger": integer}


def of_another_package(load: Callable[[], object], **plugin: Any) -> SchedulerConfiguration:
    return load_configuration(with_plugin(name="greedy", **plugin), {"greedy": load})


def test_a_plugin_of_another_package_is_used_and_its_arguments_are_checked() -> None:
    option = of_another_package(lambda: Greedy, arguments={"hunger": 3}).tiers[0][1]
    assert (option.name, option.make, option.arguments) == ("greedy", Greedy, {"hunger": 3})
    with pytest.raises(ConfigurationError, match=re.escape("tiers[0].plugins[1].arguments.hunger: must be a whole")):
        of_another_package(lambda: Greedy, arguments={"hunger": "yes"})


def broken() -> object:
    raise ImportError("no module named teeth")


@pytest.mark.parametrize(
    ("load", "word"),
    [
        (broken, "no module named teeth"),
        (lambda: "greedy", "is not a Plugin class"),
        (lambda: dict, "is not a Plugin class"),
        (lambda: type("Other", (Plugin,), {"name": "other"}), "calls itself 'other'"),
        (lambda: type("Nameless", (Plugin,), {}), "calls itself None"),
    ],
)
def test_a_plugin_of_another_package_that_is_none_is_refused(load: Callable[[], object], word: str) -> None:
    with pytest.raises(ConfigurationError, match=word) as caught:
        of_another_package(load)
    assert caught.value.field == "tiers[0].plugins[1].name"


def test_no_package_replaces_a_plugin_of_musters_own() -> None:
    loaded = load_configuration(document(), {"gang": lambda: Greedy})
    assert loaded.tiers[0][0].make is PLUGINS["gang"]


def test_a_configuration_is_read_whole() -> None:
    loaded = load_configuration(
        document(
            actions="enqueue, allocate,backfill",
            tiers=[
                {"plugins": [{"name": "gang", "enablePreemptable": False}]},
                {"plugins": [{"name": "overcommit", "arguments": {"overcommit-factor": 1.2}}]},
            ],
            configurations=[{"name": "allocate", "arguments": {"predicateErrorCacheEnable": False}}],
            metrics={"type": "prometheus"},
        )
    )
    assert loaded.actions == ("enqueue", "allocate", "backfill")
    assert [[plugin.name for plugin in tier] for tier in loaded.tiers] == [["gang"], ["overcommit"]]
    assert loaded.tiers[0][0].flags == {"enablePreemptable": False}
    assert loaded.tiers[1][0].arguments == {"overcommit-factor": Fraction(6, 5)}
    assert loaded.arguments == {"allocate": {"predicateErrorCacheEnable": False}}


def test_hierarchical_drf_and_proportion_may_stand_in_different_tiers() -> None:
    tiers = [{"plugins": [{"name": "drf", "enableHierarchy": True}]}, {"plugins": [{"name": "proportion"}]}]
    assert load_configuration(document(tiers=tiers)).tiers[0][0].flags == {"enableHierarchy": True}


def test_the_default_is_the_one_volcano_compiles_in() -> None:
    assert DEFAULT.actions == ("enqueue", "allocate", "backfill")
    assert [[plugin.name for plugin in tier] for tier in DEFAULT.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]
    assert (DEFAULT.gang_repair_timeout, DEFAULT.admission_timeout) == (60.0, 300.0)


def test_an_extender_is_configured_as_in_volcano() -> None:
    loaded = load_configuration(
        extender(
            urlPrefix="http://127.0.0.1:8713/",
            httpTimeout="100ms",
            predicateVerb="predicate",
            jobReadyVerb="",
            ignorable="true",
            managedResources=["nvidia.com/gpu", "nvidia.com/gpumem"],
        )
    )
    options = ExtenderOptions.of(loaded.tiers[0][1].arguments)
    assert options.url(Point.PREDICATE) == "http://127.0.0.1:8713/predicate"
    assert options == ExtenderOptions(
        "http://127.0.0.1:8713/",
        0.1,
        True,
        frozenset({"nvidia.com/gpu", "nvidia.com/gpumem"}),
        {Point.PREDICATE: "predicate"},
    )
    assert ExtenderOptions.of({}) == ExtenderOptions(timeout=1.0, ignorable=False)
