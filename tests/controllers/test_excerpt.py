"""How long a message may be."""

from __future__ import annotations

import pytest

from muster.controllers.excerpt import LONGEST, excerpt


@pytest.mark.parametrize("text", ["", "short", "x" * LONGEST])
def test_what_is_short_enough_stays_as_it_is(text: str) -> None:
    assert excerpt(text) == text


@pytest.mark.parametrize("characters", [LONGEST + 1, 2_000_000])
def test_of_a_long_text_beginning_and_end_are_left(characters: int) -> None:
    found = excerpt("What failed: " + "x" * (characters - 36) + " the last line says why")
    assert len(found) == LONGEST
    assert found.startswith("What failed: xxx")
    assert found.endswith("xxx the last line says why")
    assert "characters left out" in found
