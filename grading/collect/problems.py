"""The intake's one table: who, what is the matter, what to do. On the terminal and as CSV."""

import csv
import io
import shutil
import textwrap
from dataclasses import dataclass

from grading.grader.inside.wire import clean

TITLES = ("who", "what", "what to do")
NOBODY = "(source)"


@dataclass(frozen=True, order=True)
class Problem:
    """One row. `lost` says that something of somebody could not be collected."""

    who: str
    what: str
    do: str
    lost: bool = False


def table(problems, width=None):
    """The rows as lines of text, wrapped to the terminal's width."""
    rows = [tuple(map(clean, (problem.who, problem.what, problem.do))) for problem in problems]
    width = width or max(60, shutil.get_terminal_size((120, 24)).columns)
    first = min(max(len(row[0]) for row in (TITLES, *rows)), 28)
    second = (width - first - 4) // 2
    widths = (first, second, width - first - second - 4)
    for number, row in enumerate((TITLES, *rows)):
        cells = [textwrap.wrap(cell, size) or [""] for cell, size in zip(row, widths, strict=True)]
        for line in range(max(map(len, cells))):
            parts = (cell[line] if line < len(cell) else "" for cell in cells)
            yield "  ".join(f"{part:<{size}}" for part, size in zip(parts, widths, strict=True)).rstrip()
        if number == 0:
            yield "-" * width


def as_csv(problems):
    """The rows as CSV."""
    stream = io.StringIO()
    rows = csv.writer(stream)
    rows.writerow((*TITLES, "collected"))
    for problem in problems:
        cells = (_no_formula(cell) for cell in (problem.who, problem.what, problem.do))
        rows.writerow((*cells, "no" if problem.lost else "yes"))
    return stream.getvalue()


def _no_formula(cell):
    """A cell that no spreadsheet takes for a formula; names come from students."""
    cell = " ".join(cell.split())
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@")) else cell
