"""What docs/differences.md says, in the two tables that tests read."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "differences.md"
_ROW = re.compile(r"^\|(.+)\|$", re.MULTILINE)
_RULE = re.compile(r"^:?-+:?$")


def listed_differences() -> list[str]:
    """Return the first column of all tables of four columns: what differs."""
    return [cells[0] for cells in _rows() if len(cells) == 4]


def listed_samples() -> dict[str, str]:
    """Return the samples of KubeRay with what the document says of each: `yes`, or why it is not compared."""
    return {cells[0].strip("`"): cells[1] for cells in _rows() if len(cells) == 2}


def _rows() -> list[list[str]]:
    """The cells of every row, without the heads of tables."""
    rows = [[cell.strip() for cell in line.split("|")] for line in _ROW.findall(DOCUMENT.read_text())]
    rules = [number for number, cells in enumerate(rows) if all(map(_RULE.match, cells))]
    heads = {number - 1 for number in rules}
    return [cells for number, cells in enumerate(rows) if number not in heads | set(rules)]
