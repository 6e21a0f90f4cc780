"""Input that can't be used, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object stands: the file, the document in it (from 1; 0 for the file as a whole), the item of a List.

    `item` counts from 1; 0 when the document is no List. `about` is the kind and name of what stands there, as far as
    they can be told. `observed`: it was read from a running cluster (a snapshot),
    whose scheduler has to live with it too; so one that can't be used stops nothing.
    """

    file: str
    document: int = 0
    item: int = 0
    observed: bool = False
    about: str = ""

    def __str__(self) -> str:
        document = f", document {self.document}" if self.document else ""
        return f"{self.file}{document}" + (f", item {self.item}" if self.item else "")


class InputError(Exception):
    """`place` and `field` say where the fault is (an empty field: the document as a whole), `problem` what it is."""

    def __init__(self, place: Place, field: str, problem: str) -> None:
        where = f"{place}: {field}" if field else str(place)
        super().__init__(f"{where}: {problem}" + (f" ({place.about})" if place.about else ""))
        self.place = place
        self.field = field
        self.problem = problem
