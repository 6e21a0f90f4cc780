"""What differs between two normal forms, and which listed difference, if any, accounts for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tests.differential.normal_form import NormalForm

ABSENT = "-"
WHOLE = ""
"""The path of a finding that is about a whole object."""


@dataclass(frozen=True)
class Finding:
    """One field, or one whole object, that is not alike. An absent value is `ABSENT`."""

    case: str
    key: str
    path: str
    kuberay: object
    muster: object

    def __str__(self) -> str:
        return f"{self.case}: {self.key}: {self.path or 'the object'}: KubeRay {self.kuberay!r}, Muster {self.muster!r}"


def _any(kuberay: object, muster: object) -> bool:
    return True


@dataclass(frozen=True)
class Difference:
    """A difference that has a reason: the row `what` of docs/differences.md gives it.

    `objects` and `fields` are patterns of keys and paths (`*` matches anything); `holds` may ask more of both values.
    """

    what: str
    objects: tuple[str, ...]
    fields: tuple[str, ...] = ("*",)
    cases: tuple[str, ...] = ("*",)
    holds: Callable[[object, object], bool] = field(default=_any, compare=False)

    def covers(self, finding: Finding) -> bool:
        """Whether it accounts for the finding."""
        return (
            _matches(finding.case, self.cases)
            and _matches(finding.key, self.objects)
            and _matches(finding.path, self.fields)
            and self.holds(finding.kuberay, finding.muster)
        )


def findings(case: str, kuberay: NormalForm, muster: NormalForm) -> Iterator[Finding]:
    """Everything that is not alike."""
    for key in sorted(kuberay.keys() | muster.keys()):
        if key not in muster:
            yield Finding(case, key, WHOLE, "made", ABSENT)
        elif key not in kuberay:
            yield Finding(case, key, WHOLE, ABSENT, "made")
        else:
            ours, theirs = muster[key], kuberay[key]
            for path in sorted(ours.keys() | theirs.keys()):
                left, right = theirs.get(path, ABSENT), ours.get(path, ABSENT)
                if path.endswith("/ORDER"):
                    left, right = _common(left, right), _common(right, left)
                if left != right:
                    yield Finding(case, key, path, left, right)


def _common(names: object, others: object) -> str:
    """Of the names those that the others have too: what one side lacks is a finding of its own."""
    return " ".join(name for name in str(names).split() if name in str(others).split())


def unlisted(found: Iterable[Finding], listed: Iterable[Difference]) -> list[Finding]:
    """The findings that no listed difference accounts for."""
    return [finding for finding in found if not any(one.covers(finding) for one in listed)]


def _matches(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
