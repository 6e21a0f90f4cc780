"""YAML as Kubernetes reads it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from muster.yaml_documents import YamlError, yaml_documents


def read(text: str) -> Any:
    ((_, found),) = yaml_documents(f"value: {text}\n".encode())
    return found["value"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("No", False),
        ("on", True),
        ("0", 0),
        ("-17", -17),
        ("+3", 3),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b101", 5),
        ("0o17", 15),
        ("017", 15),
        ("08", "08"),
        ("0.5", 0.5),
        ("-1.", -1.0),
        (".5", 0.5),
        ("1.5e3", 1500.0),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("1e3", "1e3"),
        ("10:30", "10:30"),
        ("1:30.5", "1:30.5"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("=", "="),
        ("-", [None]),
        ("1.2.3", "1.2.3"),
        ("500m", "500m"),
        ("nowhere", "nowhere"),
        ('"5"', "5"),
        ("'true'", "true"),
        ('""', ""),
        ("!!str 5", "5"),
        ("!!int 5", 5),
        ("!!float 5", 5),
        ("!!null ''", None),
        ("! 5", "5"),
        ("{a: [1, b], 2: c, true: d}", {"a": [1, "b"], "2": "c", "true": "d"}),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ("[&a x, *a]", ["x", "x"]),
        ("{<<: {a: 1, b: 2}, b: 3}", {"a": 1, "b": 3}),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", {"a": 1, "b": 2}),
        ("{'<<': 1}", {"<<": 1}),
        ("{&k key: 1, other: *k}", {"key": 1, "other": "key"}),
    ],
)
def test_scalars_collections_and_anchors(text: str, value: Any) -> None:
    if text == "-":
        text = "\n- "
    found = read(text)
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_number() -> None:
    assert math.isnan(read(".nan"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{a: 1, a: 2}", "'a' is there twice"),
        ("{[a]: 1}", "a key has to be text"),
        ("{<<: 3}", "needs a mapping"),
        ("*nothing", "nothing stands for nothing"),
        ("&a [*a]", "a stands for nothing"),
        ("!!int five", "five"),
        ("!!binary aGVsbG8=", "binary"),
        ("!mine {a: 1}", "!mine"),
        ("!!set {a}", "set"),
        ("!!python/name:os.system x", "python"),
    ],
)
def test_what_kubernetes_does_not_read_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(YamlError, match=problem) as caught:
        list(yaml_documents(b"a: b\n---\nvalue: " + text.encode()))
    assert caught.value.document == 2
    assert "line 3" in str(caught.value)


def test_documents_are_counted_and_empty_ones_passed_over() -> None:
    text = b"# a comment\n---\n---\na: 1\n---\n~\n...\n---\nb: 2\n"
    assert list(yaml_documents(text)) == [(2, {"a": 1}), (4, {"b": 2})]


def test_a_broken_document_does_not_take_those_before_it_along() -> None:
    documents = yaml_documents(b"a: 1\n---\nb: [\n")
    assert next(documents) == (1, {"a": 1})
    with pytest.raises(YamlError, match="line 4") as caught:
        next(documents)
    assert caught.value.document == 2


@pytest.mark.parametrize("text", [b"\xff\xfe\xfa", b"a: \x00", b"a: \xc3\x28"])
def test_bytes_that_are_no_text_are_refused(text: bytes) -> None:
    with pytest.raises(YamlError):
        list(yaml_documents(text))


def test_an_integer_of_absurd_length_is_not_computed() -> None:
    assert read("9" * 5000) == "9" * 5000


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(min_size=1), inner), max_leaves=15
)


@given(VALUES)
def test_what_a_dumper_writes_is_read_back(value: Any) -> None:
    text = yaml.dump({"value": value}, Dumper=yaml.CSafeDumper, allow_unicode=False)
    ((_, found),) = yaml_documents(text.encode())
    assert found == {"value": value}
