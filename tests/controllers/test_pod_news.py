"""What happened to pods is one sentence, however many they are."""

from __future__ import annotations

import pytest

from muster.controllers.raycluster.pod_news import pods_in_words


@pytest.mark.parametrize(
    ("number", "why", "words"),
    [
        (1, "", "Created worker Pod ns/0"),
        (1, "its node is dead", "Created worker Pod ns/0: its node is dead"),
        (2, "", "Created 2 worker Pods ns/0, ns/1"),
        (2, "they are too many", "Created 2 worker Pods ns/0, ns/1: they are too many"),
        (12, "", f"Created 12 worker Pods {', '.join(f'ns/{i}' for i in range(10))} and 2 more"),
    ],
)
def test_one_sentence_for_all(number: int, why: str, words: str) -> None:
    assert pods_in_words("Created", [f"ns/{index}" for index in range(number)], why, role="Worker") == words


def test_a_thousand_long_names_fit_into_a_note() -> None:
    keys = [f"a-namespace/{'x' * 60}-{index}" for index in range(1000)]
    assert len(pods_in_words("Deleted", keys, "its group is not in the spec any more", role="Worker")) < 1024
