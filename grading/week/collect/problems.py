"""The intake's one table: who, what is the matter, what to do. On the terminal and as CSV."""

import shutil
import textwrap
from dataclasses import dataclass

from grading.grader import spreadsheet
from grading.grader.inside.text import clean
from grading.grader.spreadsheet import harmless
from grading.grader.untrusted import Unfit
from grading.grader.untrusted.files import read_file
from grading.grader.untrusted.tables import read_table
from grading.week.collect import LOST, OWNERLESS

TITLES = ("who", "what", "what to do")
NOBODY = "(source)"
LIMIT = 50_000_000  # bytes of a table


@dataclass(frozen=True, order=True)
class Problem:
    """One row. `lost` says that something of somebody could not be collected, `ownerless` that it may be anybody's."""

    who: str
    what: str
    do: str
    lost: bool = False
    ownerless: bool = False


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


def as_csv(problems, source, before=()):
    """The rows as CSV; `before` are rows of earlier intakes, as `unsettled` gives them."""
    rows = [(*(problem.who, problem.what, problem.do), _collected(problem), source) for problem in problems]
    return spreadsheet.as_csv((*TITLES, "collected", "source"), *rows, *before, end="\r\n")


def unsettled(path, source, settled):
    """The rows of an earlier table whose work has not come in since, from another source than this one.

    `settled(student)` says whether there is work of this student.
    """
    try:
        rows = read_table(read_file(path, LIMIT), (*TITLES, "collected", "source"))
    except (FileNotFoundError, Unfit):
        return []
    return [
        row for _, row in rows if row[3] in (LOST, OWNERLESS) and row[4] != harmless(source) and not settled(row[0])
    ]


def _collected(problem):
    return OWNERLESS if problem.ownerless else LOST if problem.lost else "yes"
