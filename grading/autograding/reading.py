"""The cells of whatever notebook was handed in: whole, renamed, cut off, with a conflict in it, or none at all.

Nothing in it is believed: a cell here is a kind, a text and the few words of metadata that help to find its place.
"""

import codecs
import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

SIZE_LIMIT = 20_000_000  # bytes; a notebook with pictures in its outputs can be large
CELLS_LIMIT = 2_000
FOLDERS_LIMIT = 200  # entries of a submission that are looked at
CONFLICT = re.compile(r"^<{7}[^\n]*\n(.*?)^={7}[^\n]*\n.*?(?:^>{7}[^\n]*\n?|\Z)", re.MULTILINE | re.DOTALL)


@dataclass
class Cell:
    """One cell of a submission, as far as it is looked at."""

    kind: str
    text: str
    id: str = ""
    grade_id: str = ""
    points: object = None
    attachments: dict = field(default_factory=dict)


class Unreadable(Exception):
    """A file that gives no cells; the message is the rest of a sentence that begins with its name."""


def read_submission(folder, name):
    """(cells, notes): the cells of the notebook `name`.ipynb in a submission, and sentences for the student."""
    notes = []
    for path in _candidates(Path(folder), name):
        shown = path.relative_to(folder).as_posix()
        try:
            cells, found = _cells(path)
        except Unreadable as error:
            notes.append(f"{shown} {error}")
            continue
        if shown != f"{name}.ipynb":
            notes.append(f"your notebook was taken from {shown}: name it {name}.ipynb.")
        return cells, [*notes, *(f"{shown} {sentence}" for sentence in found)]
    if not notes:
        notes.append(f"{name}.ipynb was not handed in.")
    return [], [*notes, "Your written answers could not be read; the code is graded without them."]


def _candidates(folder, name):
    """Notebooks that may be meant, the likeliest first: by name, at the top before one folder below."""
    found = [path for place in (folder, *_folders(folder)) for path in _notebooks(place)]
    stem = name.casefold()

    def likeliest(path):
        own = path.stem.casefold()
        return (path.parent != folder, own != stem, not own.startswith(stem), path.as_posix())

    return sorted(found, key=likeliest)


def _folders(folder):
    return [Path(entry) for entry in _entries(folder) if entry.is_dir(follow_symlinks=False) and entry.name[0] != "."]


def _notebooks(folder):
    return [Path(entry) for entry in _entries(folder) if entry.name.casefold().endswith(".ipynb")]


def _entries(folder):
    try:
        with os.scandir(folder) as entries:
            return [entry for _, entry in zip(range(FOLDERS_LIMIT), entries, strict=False)]
    except OSError:
        return []


def _cells(path):
    """The cells of one file and what was put right; Unreadable where there are none."""
    text = _text(path)
    document, notes = _document(text)
    raw = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(raw, list):
        raise Unreadable("is not a notebook of format 4: open it in JupyterLab, save it, and hand it in again.")
    return [cell for cell in map(_cell, raw[:CELLS_LIMIT]) if cell is not None], notes


def _text(path):
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise Unreadable("is not a plain file: hand in the notebook itself.")
            data = stream.read(SIZE_LIMIT + 1)
    except OSError:
        raise Unreadable("can't be read: hand in the notebook itself, not a link.") from None
    if len(data) > SIZE_LIMIT:
        raise Unreadable(f"is larger than {SIZE_LIMIT:,} bytes: clear its outputs and hand it in again.")
    if not data.strip():
        raise Unreadable("is empty: save it in JupyterLab and hand it in again.")
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if utf16 else "utf-8-sig", errors="replace")


def _document(text):
    """The JSON of a notebook and sentences on what was done to get at it."""
    try:
        return json.loads(text), []
    except (ValueError, RecursionError):
        pass
    for repaired, sentence in (
        (text, "has other text after its end, which was left out."),
        (CONFLICT.sub(r"\1", text), "holds a merge conflict: the version above the ======= was taken."),
    ):
        try:
            document, _ = json.JSONDecoder().raw_decode(repaired.lstrip())
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            return document, [sentence]
    cells = list(_whole_cells(text))
    if not cells:
        raise Unreadable("is not a notebook: open it in JupyterLab, save it, and hand it in again.")
    return {"cells": cells}, [f"is damaged: the {len(cells)} cells before the damage were read."]


def _whole_cells(text):
    """The cells that stand whole at the beginning of a notebook that was cut off."""
    start = re.search(r'"cells"\s*:\s*\[', text)
    at = start.end() if start else len(text)
    while True:
        at = re.compile(r"[\s,]*").match(text, at).end()
        try:
            cell, at = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield cell


def _cell(raw):
    """A Cell, or None for what is no cell at all."""
    if not isinstance(raw, dict):
        return None
    source = raw.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    if not isinstance(source, str):
        return None
    nbgrader = _object(_object(raw, "metadata"), "nbgrader")
    grade_id, cell_id = (value if isinstance(value, str) else "" for value in (nbgrader.get("grade_id"), raw.get("id")))
    return Cell(
        str(raw.get("cell_type")), source, cell_id, grade_id, nbgrader.get("points"), _object(raw, "attachments")
    )


def _object(raw, name):
    """A member that should be an object, empty where it is anything else."""
    value = raw.get(name)
    return value if isinstance(value, dict) else {}
