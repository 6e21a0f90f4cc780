"""What Ray is given for a `runtimeEnvYAML`, and how long that may take: the operator does nothing else meanwhile."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import yaml

from muster import yaml_documents
from muster.app import DEEP_ENOUGH
from muster.ray.runtime_env import RuntimeEnvError, read_runtime_env

SOON = 1.0
"""Seconds; most take a hundredth of it. Half a minute is what the first of them took."""

HEAVY = {
    "brackets that open for ever": "a: " + "[" * 3000,
    "as many as fit": "a: " + "[" * 99_990,
    "braces": "{a: " * 20_000,
    "deep blocks": "\n".join(" " * level + "k:" for level in range(400)),
    "a list without an end": "a: [" + "1," * 49_900,
    "a long list": "a: [" + "1," * 49_900 + "1]",
    "many keys": "{" + "a," * 49_000 + "}",
    "many documents": "---\n" * 24_000,
    "aliases of aliases": "\n".join(
        ["a0: &a0 []", *(f"a{n}: &a{n} [{','.join([f'*a{n - 1} '] * 100)}]" for n in range(1, 10))]
    ),
    "one mapping merged thousands of times": "a: &a {"
    + ",".join(f"k{n}: 1" for n in range(4000))
    + "}\nb: {<<: ["
    + "*a ," * 5000
    + "]}",
    "merges that double": "\n".join(
        ["a0: &a0 {x0: 1}", *(f"a{n}: &a{n} {{<<: [*a{n - 1} ,*a{n - 1} ], x{n}: 1}}" for n in range(1, 60))]
    ),
    "a number of base 60": "a: 1" + ":1" * 49_000,
    "a long number": "a: " + "9" * 99_000,
}


@pytest.fixture
def deep_stack() -> Iterator[None]:
    """As in the operator: it would not stop at a thousand levels by itself."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(DEEP_ENOUGH)
    yield
    sys.setrecursionlimit(before)


def seconds(text: str) -> float:
    """Of the processor, so that other work on the machine is not counted."""
    start = time.process_time()
    with suppress(RuntimeEnvError):
        read_runtime_env(text)
    return time.process_time() - start


@pytest.mark.usefixtures("deep_stack")
@pytest.mark.parametrize("text", HEAVY.values(), ids=HEAVY.keys())
def test_no_text_takes_long(text: str) -> None:
    assert seconds(text) < SOON


@pytest.mark.usefixtures("deep_stack")
def test_nested_text_does_not_take_for_ever_where_libyaml_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_documents, "SafeLoader", yaml.SafeLoader)
    assert seconds("# read by the other loader\na: " + "[" * 99_000) < 5 * SOON


def test_a_text_is_read_once_even_if_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def counted(*arguments: Any) -> Any:
        read.append(arguments)
        return yaml_documents.yaml_documents(*arguments)

    monkeypatch.setattr("muster.ray.runtime_env.yaml_documents", counted)
    for text in ("a: [never closed, and read by no other test", "read: {by: no other test}"):
        told = {_answer(text) for _ in range(3)}
        assert len(told) == 1
    assert len(read) == 2


def _answer(text: str) -> str:
    try:
        return json.dumps(read_runtime_env(text))
    except RuntimeEnvError as error:
        return str(error)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (None, {}),
        ("", {}),
        ("# nothing", {}),
        ("a: &a [1, x]\nb: *a", {"a": [1, "x"], "b": [1, "x"]}),
        ("a: &a {b: 1}\nc: {<<: *a, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("a: 1\na: 2", {"a": 2}),
        ("{1: a, true: b, 0.5: c}", {"1": "a", "true": "b", "0.5": "c"}),
        ("since: 2026-01-01", {"since": "2026-01-01"}),
        ("at: 10:30", {"at": "10:30"}),
        ("on: yes", {"on": True}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
    ],
)
def test_it_is_read_as_kubernetes_reads_yaml(text: str | None, value: Any) -> None:
    assert read_runtime_env(text) == value


def test_what_is_given_out_is_the_callers_own() -> None:
    read_runtime_env("a: [1]")["a"].append(2)
    assert read_runtime_env("a: [1]") == {"a": [1]}


@pytest.mark.parametrize(
    "text",
    [
        "env_vars: {TOKEN: hunter2, OTHER: ]",
        "env_vars: {TOKEN: *hunter2}",
        "env_vars: {TOKEN: !hunter2 [x]}",
        "env_vars: {TOKEN: !!int hunter2}",
        "env_vars: {TOKEN: !hunter2!x y}",
        "env_vars: {TOKEN: &hunter2}x",
        "hunter2",
        "TOKEN: {[hunter2]: x}",
        "TOKEN: {<<: hunter2}",
        "hunter2: [" + "[" * 200,
        "hunter2: \ud800",
        "TOKEN: hunter2\n---\nTOKEN: hunter2",
        "TOKEN: @hunter2",
    ],
)
def test_a_refusal_never_repeats_what_may_be_secret(text: str) -> None:
    with pytest.raises(RuntimeEnvError) as refused:
        read_runtime_env(text)
    assert "hunter2" not in str(refused.value)
