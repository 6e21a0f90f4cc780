"""A namespace that is being deleted is said to be so once."""

from __future__ import annotations

import logging

import pytest

from muster.kube.ending_namespaces import EndingNamespaces
from muster.kube.errors import Forbidden, NamespaceTerminating

ENDING = NamespaceTerminating(403, "Forbidden", "namespace team is being terminated")


def test_it_is_said_once_of_each_until_something_is_made_in_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    namespaces = EndingNamespaces(logging.getLogger("binder"))
    for name in ("team", "team", "other"):
        assert namespaces.account_for(name, ENDING)
    namespaces.serves("team")
    assert namespaces.account_for("team", ENDING)
    assert [(record.levelname, record.getMessage().split()[1]) for record in caplog.records] == [
        ("INFO", "team"),
        ("INFO", "other"),
        ("INFO", "team"),
    ]


@pytest.mark.parametrize("other", [None, Forbidden(403, "Forbidden", "no rights")], ids=["no refusal", "no rights"])
def test_another_refusal_is_not_accounted_for(other: Forbidden | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert not EndingNamespaces(logging.getLogger("binder")).account_for("team", other)
    assert not caplog.records


def test_of_very_many_the_oldest_are_forgotten() -> None:
    namespaces = EndingNamespaces(logging.getLogger("binder"))
    for number in range(1500):
        namespaces.account_for(f"team-{number}", ENDING)
    assert len(namespaces._said) == 1000
