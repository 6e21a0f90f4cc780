"""Each listed difference has its row, with the reason, in the document that users read."""

from __future__ import annotations

import pytest

from tests.differential.document import listed_differences
from tests.differential.listed import DIFFERENCES


@pytest.mark.parametrize("what", sorted({difference.what for difference in DIFFERENCES}))
def test_a_listed_difference_is_in_the_document(what: str) -> None:
    assert what in listed_differences()
