from __future__ import annotations

from typing import cast

import pytest

from muster.engine.binding_news import BindingNews
from muster.kube.events import EventRecorder, ObjectReference
from muster.scheduler.outcome import Binding

GROUP = ObjectReference("scheduling.volcano.sh/v1beta1", "PodGroup", "ns", "pg", "uid-pg")


class Told:
    """What the recorder was given: kind and name of the object, reason, message, change."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.changes: list[str] = []

    def event(
        self, about: ObjectReference, _type: str, reason: str, message: str, _action: str, *, change: str = ""
    ) -> None:
        self.events.append((f"{about.kind}/{about.name}", reason, message))
        self.changes.append(change)


def told(*bindings: Binding, group: ObjectReference | None = GROUP) -> Told:
    found = Told()
    BindingNews(cast(EventRecorder, found), lambda job: group if job == "ns/pg" else None).tell(bindings)
    return found


def bound(pod: str, node: str, *, uid: str = "", delegate: bool = False) -> Binding:
    return Binding(uid or f"uid-{pod}", "ns", pod, node, "ns/pg", delegate=delegate)


NEWS: dict[str, tuple[list[Binding], ObjectReference | None, list[tuple[str, str, str]]]] = {
    "a gang is told of once, on its PodGroup": (
        [bound("w-1", "n1"), bound("head", "n2"), bound("w-0", "n1")],
        GROUP,
        [("PodGroup/pg", "Scheduled", "3 pods bound: head -> n2, w-0 -> n1, w-1 -> n1")],
    ),
    "a pod alone is told of as kube-scheduler does": (
        [bound("p", "n1")],
        GROUP,
        [("Pod/p", "Scheduled", "Successfully assigned ns/p to n1")],
    ),
    "where there is no PodGroup the pods have to say it": (
        [bound("p", "n1"), bound("q", "n2")],
        None,
        [
            ("Pod/p", "Scheduled", "Successfully assigned ns/p to n1"),
            ("Pod/q", "Scheduled", "Successfully assigned ns/q to n2"),
        ],
    ),
    "pods for the default scheduler are told of apart": (
        [bound("head", "n1"), bound("w-0", "n2", delegate=True), bound("w-1", "n3", delegate=True)],
        GROUP,
        [
            ("Pod/head", "Scheduled", "Successfully assigned ns/head to n1"),
            ("PodGroup/pg", "Delegated", "2 pods are for default-scheduler to bind: w-0 -> n2, w-1 -> n3"),
        ],
    ),
    "one pod for the default scheduler": (
        [bound("w-0", "n2", delegate=True)],
        GROUP,
        [("Pod/w-0", "Delegated", "Its gang has a place: default-scheduler is to bind it to n2")],
    ),
    "nothing": ([], GROUP, []),
}


@pytest.mark.parametrize(("bindings", "group", "events"), NEWS.values(), ids=NEWS.keys())
def test_one_event_tells_which_pods_went_where(
    bindings: list[Binding], group: ObjectReference | None, events: list[tuple[str, str, str]]
) -> None:
    assert told(*bindings, group=group).events == events


@pytest.mark.parametrize("length", [1, 40, 253])
def test_a_gang_too_large_for_an_event_is_told_of_by_its_first_pods_and_a_number(length: int) -> None:
    names = [f"{index:03d}".rjust(length, "p") for index in range(500)]
    ((_, _, message),) = told(*(bound(name, "n" * length, uid=name) for name in names)).events
    assert len(message.encode()) <= 1024
    begun, _, rest = message.removeprefix("500 pods bound: ").rpartition(", ")
    pairs = begun.split(", ")
    assert pairs == [f"{name} -> {'n' * length}" for name in sorted(names)[: len(pairs)]]
    assert rest == f"and {500 - len(pairs)} more"
    assert len(message) + len(pairs[0]) > 1024 - len(", "), "as many as there is room for"


def test_a_gang_that_is_placed_again_in_the_same_way_is_news_again() -> None:
    first = told(bound("p", "n1", uid="a"), bound("q", "n1", uid="b"))
    again = told(bound("p", "n1", uid="c"), bound("q", "n1", uid="d"))
    assert first.events == again.events
    assert first.changes != again.changes


def test_nothing_is_told_twice_of_the_same_pods() -> None:
    pods = [bound("p", "n1"), bound("q", "n1")]
    assert told(*pods).changes == told(*reversed(pods)).changes
