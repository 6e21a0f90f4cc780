"""The turns of test processes; no cluster is needed for this."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.e2e.turns import turn


def test_one_alone_waits_for_all_others_and_they_for_it(tmp_path: Path) -> None:
    lock = tmp_path / "turns"
    order: list[str] = []
    entered = threading.Event()

    def alone() -> None:
        with turn(lock, alone=True):
            entered.set()
            order.append("alone")

    waiting = threading.Thread(target=alone)
    with turn(lock, alone=False), turn(lock, alone=False):
        waiting.start()
        assert not entered.wait(0.2)
        order.append("others")
    waiting.join()
    with turn(lock, alone=False):
        order.append("others again")
    assert order == ["others", "alone", "others again"]
