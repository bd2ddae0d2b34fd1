"""The cells of whatever was handed in as a notebook: of any format, cut off, or with a conflict in it.

Nothing in it is believed: a cell here is a kind, a text and the few words of metadata that help to find its place.
"""

import re
from dataclasses import dataclass, field

from grading.grader.untrusted import Unfit
from grading.grader.untrusted.documents import decoded, first_value, measured

SIZE = 20_000_000  # bytes; a notebook with pictures in its outputs can be large
CELLS = 2_000
BEGINS = re.compile(r'"cells"\s*:\s*\[')
BETWEEN = re.compile(r"[\s,]*")
OURS, BASE, THEIRS, END = "<<<<<<<", "|||||||", "=======", ">>>>>>>"  # of a merge conflict, at a line's beginning
SMALLER = "clear its outputs and hand it in again"
AGAIN = "open it in JupyterLab, save it, and hand it in again"


@dataclass
class Cell:
    """One cell of a submission, as far as it is looked at."""

    kind: str
    text: str
    id: str = ""
    grade_id: str = ""
    points: object = None
    attachments: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Notebook:
    """What could be read: cells, half-sentences on what was put right, and whether nothing that was written is lost."""

    cells: list
    notes: tuple = ()
    whole: bool = True


def read_notebook(data):
    """The Notebook in these bytes; Unfit where there is none."""
    if len(data) > SIZE:
        raise Unfit(f"is larger than {SIZE:,} bytes: {SMALLER}")
    if not data.strip(b"\0 \t\r\n"):
        raise Unfit("is empty: save it in JupyterLab and hand it in again")
    text, all_text = decoded(data)
    try:
        document, notes, whole = _document(measured(text))
    except Unfit:
        if all_text:
            raise
        raise Unfit(f"is not UTF-8 text and so is not a notebook: {AGAIN}") from None
    raw = _raw_cells(document)
    if raw is None:
        raise Unfit(f"is JSON, but no notebook, as it holds no cells: {AGAIN}")
    if not all_text:
        notes = (*notes, "is not UTF-8 text: letters that can't be read are shown as a question mark.")
    if len(raw) > CELLS:
        notes, whole = (*notes, f"has {len(raw):,} cells: the first {CELLS:,} were read."), False
    return Notebook([cell for cell in map(_cell, raw[:CELLS]) if cell is not None], notes, whole and all_text)


def _document(text):
    """(the JSON of a notebook, half-sentences on what was done to get at it, whether nothing is lost by that)."""
    start = len(text) - len(text.lstrip())
    try:
        document, end = first_value(text, start)
    except Unfit:
        pass
    else:
        if not text[end:].strip():
            return document, (), True
        if isinstance(document, dict):
            marked = _has_conflict(text[end:])
            what = "the marks of a merge conflict" if marked else "other text"
            return document, (f"has {what} after its end, which was left out.",), not marked
    if _has_conflict(text):
        above, below = _two_versions(text)
        for version, named in ((above, "above"), (below, "below")):
            try:
                document, _ = first_value(version.lstrip())
            except Unfit:
                continue
            if isinstance(document, dict):
                return document, (f"holds a merge conflict: the version {named} the ======= was taken.",), False
    cells = list(_whole_cells(text))
    if not cells:
        raise Unfit(f"is not JSON (cut short?) and so is not a notebook: {AGAIN}")
    return {"cells": cells}, (f"is damaged: the {len(cells)} cells before the damage were read.",), False


def _has_conflict(text):
    return f"\n{OURS}" in f"\n{text}"


def _two_versions(text):
    """A text without its conflicts: once with what stands above each =======, once with what stands below."""
    above, below, part = [], [], None
    for line in text.split("\n"):  # and at nothing else that may stand in a string
        mark = line[:7]
        if mark in (OURS, BASE, THEIRS, END) and (part is not None or mark == OURS):
            part = None if mark == END else mark
            continue
        if part in (None, OURS):
            above.append(line)
        if part in (None, THEIRS):
            below.append(line)
    return "\n".join(above), "\n".join(below)


def _whole_cells(text):
    """The cells that stand whole at the beginning of a notebook that was cut off."""
    start = BEGINS.search(text)
    at = start.end() if start else len(text)
    while True:
        at = BETWEEN.match(text, at).end()
        try:
            cell, at = first_value(text, at)
        except Unfit:
            return
        yield cell


def _raw_cells(document):
    """The list of cells: at the top since format 4, in worksheets before. None where there is none."""
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("cells"), list):
        return document["cells"]
    sheets = document.get("worksheets")
    if not isinstance(sheets, list):
        return None
    found = [sheet["cells"] for sheet in sheets if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)]
    return [cell for cells in found for cell in cells] if found or not sheets else None


def _cell(raw):
    """A Cell, or None for what is no cell at all."""
    if not isinstance(raw, dict):
        return None
    source = raw.get("source", raw.get("input", ""))  # a code cell's text is its input in format 3
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    kind = raw.get("cell_type")
    if kind == "heading":  # of format 3; markdown since
        kind, source = "markdown", f"{'#' * _level(raw.get('level'))} {source}"
    nbgrader = _object(_object(raw, "metadata"), "nbgrader")
    grade_id, cell_id = (value if isinstance(value, str) else "" for value in (nbgrader.get("grade_id"), raw.get("id")))
    kind = kind if isinstance(kind, str) else ""
    return Cell(kind, source, cell_id, grade_id, nbgrader.get("points"), _object(raw, "attachments"))


def _level(value):
    return value if isinstance(value, int) and 1 <= value <= 6 else 1


def _object(raw, name):
    """A member that should be an object, empty where it is anything else."""
    value = raw.get(name)
    return value if isinstance(value, dict) else {}
