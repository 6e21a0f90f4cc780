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
from muster.testing import Cluster, gang, nodes, queue


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
            with_plugin(name="capacity", arguments={"capacity.DRAConsumableCapacityEnable": True}),
            "tiers[0].plugins[1].arguments.capacity.DRAConsumableCapacityEnable",
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
            with_plugin(name="predicates", arguments={"predicate.DynamicResourceAllocationEnable": "perhaps"}),
            "tiers[0].plugins[1].arguments.predicate.DynamicResourceAllocationEnable",
            "true or false",
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


def failing(*, name: str = "greedy", **members: Any) -> Callable[[], object]:
    return lambda: type("Failing", (Plugin,), {"name": name, "arguments": {"hunger": integer}, **members})


def raise_it(*_: object) -> None:
    raise KeyError("teeth")


def leave(*_: object) -> None:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("load", "field", "word"),
    [
        (leave, "name", "SystemExit"),
        (failing(__init__=raise_it), "name", "can't be made: KeyError"),
        (failing(register=raise_it), "name", "can't be used: KeyError"),
        (failing(register=lambda _, points: points.add("no_such_point", raise_it)), "name", "no extension point"),
        (failing(register=lambda _, points: points.add("protectors", raise_it)), "name", "no extension point"),
        (failing(register=lambda _, points: points.add("hurdles", None)), "name", "can't be called"),
        (failing(arguments={"hunger": raise_it}), "arguments.hunger", "can't be read: KeyError"),
    ],
)
def test_a_plugin_that_fails_in_any_way_is_refused_when_it_is_read(
    load: Callable[[], object], field: str, word: str
) -> None:
    with pytest.raises(ConfigurationError, match=word) as caught:
        of_another_package(load, arguments={"hunger": 1})
    assert caught.value.field == f"tiers[0].plugins[1].{field}"


BAD_NUMBERS = (
    10**30,
    -(10**30),
    2**63 - 1,
    1e308,
    1e-308,
    float("inf"),
    float("nan"),
    "1e99999999",
    "1e400",
    "1e-99999999",
)
EXTREMES: tuple[object, ...] = (
    0,
    -1,
    *BAD_NUMBERS,
    "",
    "²",
    "0h",
    "-1s",
    "9" * 400 + "h",
    "true",
    None,
    [],
    {},
    "23:59-00:00",
)
EXTREME_ARGUMENTS = [
    (plugin, key, value)
    for plugin, made in PLUGINS.items()
    for key in (*made.arguments, *(f"{prefix}x" for prefix in made.argument_prefixes))
    for value in EXTREMES
]


@pytest.mark.parametrize("name", sorted({name for name, _, _ in EXTREME_ARGUMENTS}))
def test_an_argument_with_anything_in_it_is_refused_or_understood(name: str) -> None:
    for _, key, value in (each for each in EXTREME_ARGUMENTS if each[0] == name):
        inside: object = {"cpu": value, "mem": value}
        for given in (value, inside, {"cpu": {"type": "MostAllocated", "weight": value}}):
            try:
                loaded = load_configuration(with_plugin(name=name, arguments={key: given}))
            except ConfigurationError:
                continue
            cluster = Cluster.of(nodes("n", 2, cpu=4), queue("q"), gang("g", 2, queue="q"), configuration=loaded)
            cluster.run(2)


def test_a_value_without_end_is_shown_only_in_part() -> None:
    """Aliases make such a value out of a small file."""
    value: list[Any] = ["a"]
    for _ in range(40):
        value = [value, value]
    for given in (document(actions=value), with_plugin(name=value), with_plugin(name="gang", enableJobOrder=value)):
        with pytest.raises(ConfigurationError) as caught:
            load_configuration(given)
        assert len(str(caught.value)) < 1000


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
