from __future__ import annotations

import pytest

from muster.engine.times import rfc3339, unix_seconds

READABLE = {
    "as Kubernetes writes it": ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    "with parts of a second and an offset": ("2026-01-01T01:30:00.75+01:30", "2026-01-01T00:00:00Z"),
    "the first": ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    "the last": ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
}


@pytest.mark.parametrize(("text", "written"), READABLE.values(), ids=READABLE.keys())
def test_what_is_read_can_be_written_again(text: str, written: str) -> None:
    assert rfc3339(unix_seconds(text)) == written


@pytest.mark.parametrize("text", ["soon", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"])
def test_what_could_not_be_written_again_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"Invalid isoformat|out of range"):
        unix_seconds(text)


def test_an_absent_time_is_the_epoch() -> None:
    assert unix_seconds(None) == 0.0
