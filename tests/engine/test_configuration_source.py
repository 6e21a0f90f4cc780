from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from muster.engine.configuration_source import FileConfiguration, FixedConfiguration, read_configuration
from muster.scheduler.conf import DEFAULT, ConfigurationError
from tests.engine.manual_clock import ManualClock

TIERS = "tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]\n"
VALID = 'actions: "enqueue, allocate"\n' + TIERS
OTHER = 'actions: "enqueue, allocate, backfill"\n' + TIERS


class Watched:
    """A configuration file under watch: `changes` counts, `refusals` quote what could not be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock()
        self.source = FileConfiguration(path, self.clock, interval=5.0)
        self.changes = 0
        self.refusals: list[str] = []

    def _changed(self) -> None:
        self.changes += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.source.watch(self._changed, self.refusals.append))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def write(self, text: str | bytes) -> None:
        """Write as an editor may, and let the watch see it; the modification time moves even on coarse file systems."""
        before = self.path.stat().st_mtime_ns if self.path.exists() else 0
        self.path.write_bytes(text.encode() if isinstance(text, str) else text)
        os.utime(self.path, ns=(before + 10**9, before + 10**9))
        await self.clock.advance(5)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    path = tmp_path / "scheduler.yaml"
    path.write_text(VALID)
    return Watched(path)


async def test_a_changed_file_is_read_again(watched: Watched) -> None:
    before = watched.source.current
    async with watched.running():
        await watched.write(OTHER)
    assert before.actions != watched.source.current.actions == ("enqueue", "allocate", "backfill")
    assert (watched.changes, watched.refusals) == (1, [])


async def test_an_unchanged_file_is_left_alone(watched: Watched) -> None:
    async with watched.running():
        await watched.clock.advance(1000)
    assert (watched.changes, watched.refusals) == (0, [])


UNUSABLE: dict[str, str | bytes] = {
    "not YAML": "actions: [",
    "a date that there is not": "actions: 2026-02-30",
    "nested too deep": "[" * 2000,
    "not a mapping": "- a",
    "an unknown action": 'actions: "enqueue, dance"\n' + TIERS,
    "empty": "",
    "a time that is none": "actions: !!timestamp abc",
    "a number that is none": "actions: !!int ''",
    "a number that takes for ever": VALID.replace(
        "{name: gang}", "{name: overcommit, arguments: {overcommit-factor: 1e99999999}}"
    ),
    "a value without end": "a: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
}


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_an_unusable_file_keeps_the_old_one_and_is_reported_once(watched: Watched, text: str | bytes) -> None:
    async with watched.running():
        await watched.write(text)
        await watched.clock.advance(100)
        assert watched.source.current.actions == ("enqueue", "allocate")
        assert (watched.changes, len(watched.refusals)) == (0, 1)
        assert str(watched.path) in watched.refusals[0]
        await watched.write(OTHER)
    assert (watched.changes, watched.source.current.actions[-1]) == (1, "backfill")


async def test_a_file_in_another_encoding_of_yaml_is_read(watched: Watched) -> None:
    async with watched.running():
        await watched.write(OTHER.encode("utf-16"))
    assert (watched.changes, watched.source.current.actions[-1]) == (1, "backfill")


async def test_a_file_that_vanishes_keeps_the_old_one(watched: Watched) -> None:
    async with watched.running():
        watched.path.unlink()
        await watched.clock.advance(5)
        assert (watched.changes, len(watched.refusals)) == (0, 1)
        await watched.write(OTHER)
    assert watched.changes == 1


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_start_with_an_unusable_file_fails_and_names_it(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigurationError, match=str(path)):
        FileConfiguration(path, ManualClock())


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("actions: enqueue\ntiers:\n- plugins:\n  - name: gang\n  - name: gangs\n", 5, "unknown plugin 'gangs'"),
        ("actions: enqueue\ntiers:\n- plugins:\n  - name: gang\n    arguments: {a.b: 1}\n", 5, "arguments.a.b: is not"),
        (
            "actions: enqueue\ntiers:\n- plugins:\n  - name: extender\n    arguments:\n"
            "      extender.urlPrefix: http://extender\n      extender.httpTimeout: 100\n",
            7,
            "arguments.extender.httpTimeout: must be a time such as 90s or 1h30m, not 100",
        ),
        ("actions: dance\ntiers: []\n", 1, "unknown action 'dance'"),
        ("tiers:\n- plugins: []\nactions: enqueue\ntier: 1\n", 4, "tier: is not known"),
        ("\nactions: enqueue\n", 2, "tiers: must be a list, not nothing"),
        ("actions: enqueue\ntiers:\n- plugins:\n  - arguments: {}\n", 4, "unknown plugin None"),
        ("actions: enqueue\ntiers:\n- plugins:\n  - name: gang\n    enableJobOrder: 1\n", 5, "must be true or false"),
        ("", 1, "is empty"),
        ("# nothing but this\n", 1, "is empty"),
        ("\n- a\n", 2, "must be a mapping"),
        ("actions: enqueue\ntiers: []\nactions: allocate\n", 3, "actions is there twice"),
        ("actions: enqueue\ntiers:\n- plugins:\n  - name: gang\n    name: drf\n", 5, "name is there twice"),
    ],
)
def test_what_is_not_understood_is_named_with_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=re.escape(f"{path}, line {line}: ")) as caught:
        read_configuration(path)
    assert problem in str(caught.value)


def config_map(data: str, metadata: str = "{name: volcano-scheduler-configmap}") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\n{data}"


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


CONFIG_MAPS = {
    "Volcano's key": config_map(f"data:\n  volcano-scheduler.conf: |\n{indented(VALID)}"),
    "Volcano's key among others": config_map(f"data:\n  a: b\n  volcano-scheduler.conf: |\n{indented(VALID)}  z: y\n"),
    "Muster's key among others": config_map(f"data:\n  a: b\n  scheduler.yaml: |\n{indented(VALID)}"),
    "the only key": config_map(f"data:\n  mine.yaml: |\n{indented(VALID)}"),
    "JSON": json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"volcano-scheduler.conf": VALID}}
    ),
    "quoted": config_map(f"data:\n  volcano-scheduler.conf: {json.dumps(VALID)}\n"),
    "in a folded block": config_map("data:\n  c: >\n    {actions: 'enqueue, allocate', tiers: []}\n"),
}


@pytest.mark.parametrize("text", CONFIG_MAPS.values(), ids=CONFIG_MAPS.keys())
def test_a_whole_config_map_is_read_like_the_file_in_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(text)
    assert read_configuration(path).actions == ("enqueue", "allocate")


BAD_CONFIG_MAPS = {
    "without data": (config_map(""), "", "data: a ConfigMap with the scheduler's configuration has it under"),
    "data that is none": (config_map("data: [a]\n"), "", "data: a ConfigMap with"),
    "no key": (config_map("data: {}\n"), "", "data: a ConfigMap with"),
    "two keys, neither known": (config_map("data: {a: b, c: d}\n"), "", "this one has a, c"),
    "a value that is no text": (config_map("data: {a: {b: c}}\n"), "", "data[a]: must be text"),
    "data twice": (config_map("data: {}\ndata: {}\n"), ", line 5", "data is there twice"),
    "an unknown plugin in a block": (
        config_map("data:\n  c: |\n    actions: enqueue\n    tiers:\n    - plugins:\n      - name: gangs\n"),
        ", line 9",
        "tiers[0].plugins[0].name: unknown plugin 'gangs'",
    ),
    "an unknown plugin in a quoted text": (
        config_map('data: {c: "actions: enqueue\\ntiers:\\n- plugins:\\n  - name: gangs\\n"}\n'),
        ", data[c], line 4",
        "unknown plugin 'gangs'",
    ),
    "an action twice": (
        config_map("data:\n  c: |\n\n    actions: enqueue\n    actions: allocate\n"),
        ", line 8",
        "twice",
    ),
    "no YAML inside": (config_map("data:\n  c: 'actions: ['\n"), ", data[c]", "not YAML"),
    "empty inside": (config_map("data: {c: ''}\n"), ", data[c], line 1", "is empty"),
}


@pytest.mark.parametrize(("text", "place", "problem"), BAD_CONFIG_MAPS.values(), ids=BAD_CONFIG_MAPS.keys())
def test_a_config_map_that_can_not_be_used_says_where(tmp_path: Path, text: str, place: str, problem: str) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_configuration(path)
    assert str(caught.value).startswith(f"{path}{place}: "), str(caught.value)
    assert problem in str(caught.value)


def test_a_half_written_file_is_refused_with_the_line_at_which_it_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text('actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: "pri')
    with pytest.raises(ConfigurationError, match=r"(?s)not YAML: .*line 4"):
        read_configuration(path)


async def test_a_fixed_configuration_has_nothing_to_watch() -> None:
    source = FixedConfiguration()
    await source.watch(lambda: None, lambda problem: None)
    assert source.current is DEFAULT
