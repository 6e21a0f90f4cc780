"""The scheduler's configuration: Volcano's YAML document, parsed and checked.

The document comes in as plain data; reading files is somebody else's business. Whatever is not understood is refused
with the name of the field: a site must not believe that a plugin runs which does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.scheduler.actions import ACTIONS
from muster.scheduler.extender_client import ExtenderClient
from muster.scheduler.framework import Framework, Plugin
from muster.scheduler.plugins import NOT_YET as PLUGINS_NOT_YET
from muster.scheduler.plugins import PLUGINS
from muster.scheduler.plugins.arguments import boolean, integer, shown
from muster.scheduler.plugins.usage import Usage

FLAGS = frozenset(
    {
        "enableJobOrder",
        "enableHierarchy",
        "enableJobReady",
        "enableJobPipelined",
        "enableTaskOrder",
        "enablePreemptable",
        "enableReclaimable",
        "enablePreemptive",
        "enableQueueOrder",
        "enabledClusterOrder",
        "enablePredicate",
        "enableBestNode",
        "enableNodeOrder",
        "enableTargetJob",
        "enableReservedNodes",
        "enableJobEnqueued",
        "enabledVictim",
        "enableJobStarving",
        "enabledOverused",
        "enabledAllocatable",
        "enabledHyperNodeOrder",
        "enabledSubJobReady",
        "enabledSubJobPipelined",
        "enabledSubJobOrder",
        "enabledHyperNodeGradient",
    }
)
_ACTION_ARGUMENTS: dict[str, dict[str, Callable[[object], Any]]] = {
    "allocate": {"predicateErrorCacheEnable": boolean},
    "backfill": {"predicateErrorCacheEnable": boolean},
    "preempt": {
        "predicateErrorCacheEnable": boolean,
        "enableTopologyAwarePreemption": boolean,
        "topologyAwarePreemptWorkerNum": integer,
        "minCandidateNodesPercentage": integer,
        "minCandidateNodesAbsolute": integer,
        "maxCandidateNodesAbsolute": integer,
    },
    "reclaim": {"predicateErrorCacheEnable": boolean},
    "gangpreempt": {"maxDomains": integer, "allowWholeBundle": boolean},
    "gangreclaim": {"maxDomains": integer, "allowWholeBundle": boolean},
}


PROMETHEUS = "prometheus"


class ConfigurationError(ValueError):
    """The document can't be used; `field` says where (`tiers[0].plugins[1].name`), `problem` what is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


@dataclass(frozen=True, slots=True)
class PluginOption:
    """A plugin of a tier: its flags as given (absent means on, but for hierarchy and clusterOrder), its arguments."""

    name: str
    make: type[Plugin]
    flags: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """What runs in a cycle. Times in seconds; change them with `dataclasses.replace`.

    `metrics` says who knows what nodes really use. `gang_repair_timeout` is how long a gang below its minimum may hold
    nodes; `admission_timeout` how long an admitted gang that can't be placed keeps its reservation, and how long
    room is kept for whoever waits for a pod to leave;
    `starvation_timeout` how long a gang waits for room before room is held for it (0: for ever; a queue may set its
    own).
    """

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    gang_repair_timeout: float = 60.0
    admission_timeout: float = 300.0
    starvation_timeout: float = 600.0


PluginLoaders = Mapping[str, Callable[[], object]]
"""Plugins from elsewhere, by name; calling one gives the class."""


def load_configuration(document: object, installed: PluginLoaders | None = None) -> SchedulerConfiguration:
    """Check a parsed document. `installed` are plugins from other packages. Raises ConfigurationError."""
    if document is None:
        raise ConfigurationError("", "the configuration is empty")
    body = _mapping(document, "", {"actions", "tiers", "configurations", "metrics"})
    configuration = SchedulerConfiguration(
        actions=_actions(body.get("actions")),
        tiers=_tiers(body.get("tiers"), installed or {}),
        arguments=_configurations(body.get("configurations") or []),
        metrics=_metrics(body.get("metrics") or {}),
    )
    source = configuration.metrics.get("type", PROMETHEUS)
    if source != PROMETHEUS and any(option.make is Usage for tier in configuration.tiers for option in tier):
        raise ConfigurationError("metrics.type", f"{source!r} is not supported for plugin 'usage', only {PROMETHEUS!r}")
    return configuration


def build_framework(configuration: SchedulerConfiguration, extenders: ExtenderClient | None = None) -> Framework:
    """The plugins that the configuration asks for, fresh; `extenders` is how programs outside are asked."""
    tiers = [
        [(option.make(dict(option.arguments)), dict(option.flags)) for option in tier] for tier in configuration.tiers
    ]
    if extenders is not None:
        for plugin in (plugin for tier in tiers for plugin, _ in tier):
            plugin.connect(extenders)
    return Framework(tiers)


def not_asked_here(configuration: SchedulerConfiguration) -> tuple[str, ...]:
    """The plugins that say nothing where programs outside can't be asked."""
    return tuple(sorted({option.name for tier in configuration.tiers for option in tier if option.make.asks_outside}))


def _mapping(value: object, path: str, keys: set[str] | None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(path, f"must be a mapping, not {_kind(value)}")
    for key in value:
        if not isinstance(key, str) or (keys is not None and key not in keys):
            raise ConfigurationError(_join(path, str(key)), "is not known")
    return value


def _list(value: object, path: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ConfigurationError(path, f"must be a list, not {_kind(value)}")
    return value


def _kind(value: object) -> str:
    return "nothing" if value is None else shown(value)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _actions(value: object) -> tuple[str, ...]:
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError("actions", f"must name actions, separated by commas, not {_kind(value)}")
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    for name in names:
        _check_action(name, "actions")
    return names


def _check_action(name: object, path: str) -> str:
    if isinstance(name, str) and name in ACTIONS:
        return name
    raise ConfigurationError(path, f"unknown action {shown(name)} (known: {', '.join(sorted(ACTIONS))})")


def _tiers(value: object, installed: PluginLoaders) -> tuple[tuple[PluginOption, ...], ...]:
    tiers = []
    for position, entry in enumerate(_list(value, "tiers")):
        path = f"tiers[{position}]"
        tier = _mapping(entry, path, {"plugins"})
        plugins = _list(tier.get("plugins"), f"{path}.plugins")
        options = [_plugin(plugin, f"{path}.plugins[{index}]", installed) for index, plugin in enumerate(plugins)]
        _check_names(options, path)
        tiers.append(tuple(options))
    return tuple(tiers)


def _check_names(options: list[PluginOption], path: str) -> None:
    names = [option.name for option in options]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"{path}.plugins", f"plugin {name!r} is named twice")
    for index, option in enumerate(options):
        if option.name == "drf" and option.flags.get("enableHierarchy") and "proportion" in names:
            raise ConfigurationError(
                f"{path}.plugins[{index}].enableHierarchy",
                "hierarchical drf and proportion both order queues and exclude each other in one tier",
            )


def _plugin(value: object, path: str, installed: PluginLoaders) -> PluginOption:
    body = _mapping(value, path, {"name", "arguments", *FLAGS})
    name = body.get("name")
    make = _find_plugin(name, f"{path}.name", installed)
    flags = {key: _flag(body[key], f"{path}.{key}") for key in body if key in FLAGS}
    where = f"{path}.arguments"
    given = _mapping(body.get("arguments") or {}, where, None)
    arguments = _arguments(given, make.arguments, where, make.argument_prefixes)
    option = PluginOption(make.name, make, flags, arguments)
    _try(option, path)
    return option


def _try(option: PluginOption, path: str) -> None:
    """Make the plugin and let it register. Whatever it raises is an error in the file, not in the first cycle."""
    try:
        plugin = option.make(dict(option.arguments))
    except ValueError as error:
        raise ConfigurationError(f"{path}.arguments", str(error)) from None
    except Exception as error:
        raise ConfigurationError(f"{path}.name", f"plugin {option.name!r} can't be made: {error!r}") from error
    try:
        Framework([[(plugin, dict(option.flags))]])
    except Exception as error:
        raise ConfigurationError(f"{path}.name", f"plugin {option.name!r} can't be used: {error!r}") from error


def _find_plugin(name: object, path: str, installed: PluginLoaders) -> type[Plugin]:
    if isinstance(name, str) and name in PLUGINS:
        return PLUGINS[name]
    if isinstance(name, str) and name in installed:
        return _load_plugin(name, path, installed[name])
    if isinstance(name, str) and name in PLUGINS_NOT_YET:
        raise ConfigurationError(path, f"plugin {name!r} of Volcano is not supported yet")
    known = ", ".join(sorted({*PLUGINS, *installed}))
    raise ConfigurationError(path, f"unknown plugin {shown(name)} (known: {known})")


def _load_plugin(name: str, path: str, load: Callable[[], object]) -> type[Plugin]:
    """The class behind an installed plugin. Whatever goes wrong in a foreign package is an error in the file."""
    try:
        found = load()
    except (Exception, SystemExit) as error:
        raise ConfigurationError(path, f"plugin {name!r} can't be loaded: {error!r}") from error
    if not isinstance(found, type) or not issubclass(found, Plugin):
        raise ConfigurationError(path, f"plugin {name!r} can't be loaded: {found!r} is not a Plugin class")
    if getattr(found, "name", None) != name:
        raise ConfigurationError(
            path, f"plugin {name!r} can't be loaded: the class calls itself {getattr(found, 'name', None)!r}"
        )
    return found


def _flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(path, f"must be true or false, not {_kind(value)}")
    return value


Parsers = Mapping[str, Callable[[object], Any]]


def _arguments(raw: Mapping[str, Any], known: Parsers, path: str, prefixes: Parsers | None = None) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for key, value in raw.items():
        parse = known.get(key) or _by_prefix(key, prefixes or {})
        if parse is None:
            raise ConfigurationError(f"{path}.{key}", "is not an argument of it")
        try:
            parsed[key] = parse(value)
        except ValueError as error:
            raise ConfigurationError(f"{path}.{key}", str(error)) from None
        except Exception as error:
            raise ConfigurationError(f"{path}.{key}", f"can't be read: {error!r}") from error
    return parsed


def _by_prefix(key: str, prefixes: Parsers) -> Callable[[object], Any] | None:
    """The parser of an argument that ends in a name of the user's own."""
    for prefix, parse in prefixes.items():
        if key.startswith(prefix) and len(key) > len(prefix):
            return parse
    return None


def _configurations(value: object) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for position, entry in enumerate(_list(value, "configurations")):
        path = f"configurations[{position}]"
        body = _mapping(entry, path, {"name", "arguments"})
        name = _check_action(body.get("name"), f"{path}.name")
        raw = _mapping(body.get("arguments") or {}, f"{path}.arguments", None)
        found[name] = _arguments(raw, _ACTION_ARGUMENTS.get(name, {}), f"{path}.arguments")
    return found


def _metrics(value: object) -> dict[str, str]:
    """Who is asked what nodes use; a source that nobody can read is refused only where a plugin would read it."""
    found: dict[str, str] = {}
    for key, each in _mapping(value, "metrics", None).items():
        if not isinstance(each, (str, int, float)):
            raise ConfigurationError(f"metrics.{key}", f"must be text, not {_kind(each)}")
        found[key] = str(each).lower() if isinstance(each, bool) else str(each)
    return found


DEFAULT = load_configuration(
    {
        "actions": "enqueue, allocate, backfill",
        "tiers": [
            {"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}]},
            {
                "plugins": [
                    {"name": "overcommit"},
                    {"name": "drf"},
                    {"name": "predicates"},
                    {"name": "proportion"},
                    {"name": "nodeorder"},
                ]
            },
        ],
    }
)
"""Volcano's compiled-in configuration."""
