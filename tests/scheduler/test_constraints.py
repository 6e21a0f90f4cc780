from __future__ import annotations

import pytest

from muster.scheduler.constraints import (
    PodConstraints,
    PreferredTerm,
    SelectorTerm,
    Taint,
    Toleration,
)
from muster.scheduler.selectors import Operator, Requirement

LABELS = {"zone": "a", "cores": "16", "word": "x"}


@pytest.mark.parametrize(
    ("requirement", "matches"),
    [
        (Requirement("zone", Operator.IN, ("a", "b")), True),
        (Requirement("zone", Operator.IN, ("b",)), False),
        (Requirement("absent", Operator.IN, ("a",)), False),
        (Requirement("zone", Operator.NOT_IN, ("b",)), True),
        (Requirement("absent", Operator.NOT_IN, ("b",)), True),
        (Requirement("zone", Operator.EXISTS), True),
        (Requirement("absent", Operator.EXISTS), False),
        (Requirement("absent", Operator.DOES_NOT_EXIST), True),
        (Requirement("cores", Operator.GT, ("8",)), True),
        (Requirement("cores", Operator.GT, ("16",)), False),
        (Requirement("cores", Operator.LT, ("32",)), True),
        (Requirement("word", Operator.LT, ("32",)), False),
        (Requirement("cores", Operator.GT, ("many",)), False),
        (Requirement("cores", Operator.GT), False),
        (Requirement("cores", Operator.GT, ("+8",)), True),
        (Requirement("cores", Operator.GT, ("-8",)), True),
        (Requirement("cores", Operator.GT, ("1_0",)), False),
        (Requirement("cores", Operator.GT, (" 8",)), False),
        (Requirement("absent", Operator.LT, ("8",)), False),
    ],
)
def test_a_requirement_reads_labels_as_kubernetes_does(requirement: Requirement, matches: bool) -> None:
    assert requirement.matches(LABELS) is matches


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerates"),
    [
        (Toleration("k", "Equal", "v"), Taint("k", "v"), True),
        (Toleration("k", "Equal", "w"), Taint("k", "v"), False),
        (Toleration("k", "Exists"), Taint("k", "v"), True),
        (Toleration("", "Exists"), Taint("k", "v"), True),
        (Toleration("", "Equal"), Taint("k", ""), False),
        (Toleration("k", "Exists", effect="NoExecute"), Taint("k", "v"), False),
        (Toleration("k", "Exists", effect="NoSchedule"), Taint("k", "v"), True),
        (Toleration("k", "Gt", "5"), Taint("k", "6"), True),
        (Toleration("k", "Gt", "5"), Taint("k", "5"), False),
        (Toleration("k", "Lt", "5"), Taint("k", "4"), True),
        (Toleration("k", "Lt", "5"), Taint("k", "high"), False),
        (Toleration("k", "Near", "v"), Taint("k", "v"), False),
    ],
)
def test_a_toleration_matches_a_taint(toleration: Toleration, taint: Taint, tolerates: bool) -> None:
    assert toleration.tolerates(taint) is tolerates


def test_terms_are_alternatives_and_an_empty_term_matches_nothing() -> None:
    zone = SelectorTerm(labels=(Requirement("zone", Operator.IN, ("a",)),))
    named = SelectorTerm(fields=(Requirement("metadata.name", Operator.IN, ("n1",)),))
    assert PodConstraints(required=(zone, named)).selects("n2", LABELS)
    assert PodConstraints(required=(named,)).selects("n1", {})
    assert not PodConstraints(required=(named,)).selects("n2", LABELS)
    assert not PodConstraints(required=(SelectorTerm(),)).selects("n1", LABELS)
    assert not PodConstraints(required=()).selects("n1", LABELS)


def test_preferences_add_up_and_the_mentioned_labels_are_known() -> None:
    zone = SelectorTerm(labels=(Requirement("zone", Operator.IN, ("a",)),))
    word = SelectorTerm(labels=(Requirement("word", Operator.EXISTS),))
    constraints = PodConstraints(
        node_selector=(("disk", "ssd"),), preferred=(PreferredTerm(10, zone), PreferredTerm(5, word))
    )
    assert constraints.preference("n1", LABELS) == 15
    assert constraints.label_keys() == {"disk", "zone", "word"}
