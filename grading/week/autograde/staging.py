"""A copy of a submission that holds only what is graded, for nbgrader to work on.

nbgrader copies, opens and skips what it finds in submitted/. A submission may hold no notebook, a broken one, links,
pipes: so nbgrader is shown a sound copy, and what was handed in stays as it is.
"""

import fnmatch
import os
from dataclasses import dataclass
from pathlib import Path

import nbformat

from grading.authoring.cells import is_answer, nbgrader_of
from grading.grader.student_files import take_in
from grading.grader.untrusted import Unfit
from grading.grader.untrusted.files import read_file
from grading.week.autograde.answers import rebuild
from grading.week.autograde.reading import Read, read_submission
from grading.week.feedback_key import KEY, key_in
from grading.week.times import STAMP_LIMIT, TIMESTAMP

EXERCISES = "exercises_en"


@dataclass(frozen=True)
class Staged:
    """A submission as nbgrader will see it."""

    student: str
    handed_in: Path
    folder: Path
    notes: tuple  # sentences for the student about the notebook
    unsure: frozenset  # answers that look untouched and may not be


def students(coursedir, assignment):
    """{student id: folder} of the submissions that the command line asks for."""
    top = Path(coursedir.format_path(coursedir.submitted_directory, ".", "."))
    excluded = coursedir.student_id_exclude.split(",")
    asked = coursedir.student_id
    found = {}
    for name in sorted(os.listdir(top)) if top.is_dir() else ():
        folder = Path(coursedir.format_path(coursedir.submitted_directory, name, assignment))
        if name.startswith(".") or name in excluded or not os.path.lexists(folder):
            continue
        if name == asked or fnmatch.fnmatchcase(name, asked):
            found[name] = folder
    return found


def stage(student, handed_in, room, assignment, released):
    """Write the sound copy of one submission below `room`."""
    folder = room / student / assignment
    (folder / EXERCISES).mkdir(parents=True)
    plain = _is_plain(handed_in)
    found = read_submission(handed_in, assignment) if plain else Read([], (), False)
    notebook, about = rebuild(released, found.cells)
    nbformat.write(notebook, folder / f"{assignment}.ipynb")
    for name, text in take_in(handed_in).files.items():
        (folder / EXERCISES / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / EXERCISES / name).write_text(text, encoding="utf-8", errors="replace", newline="\n")
    about += _timestamp(handed_in, folder) if plain else []
    if plain and (key := key_in(handed_in)):
        (folder / KEY).write_bytes(key)
    return Staged(student, handed_in, folder, (*found.notes, *about), _unsure(notebook, found))


def _is_plain(handed_in):
    """Whether a submission is a folder, and no link leads to it; nbgrader itself would follow one."""
    return handed_in.is_dir() and not handed_in.is_symlink() and not handed_in.parent.is_symlink()


def _timestamp(handed_in, folder):
    """Bring the time of hand-in along; a sentence where there is one that can't be read."""
    try:
        (folder / TIMESTAMP).write_bytes(read_file(handed_in / TIMESTAMP, STAMP_LIMIT))
    except FileNotFoundError:
        return []
    except Unfit as error:
        return [f"{TIMESTAMP} {error}."]
    return []


def _unsure(notebook, found):
    """The answers that may have been written although none was found: a person must look before they count as 0."""
    answers = {nbgrader_of(cell)["grade_id"] for cell in notebook.cells if is_answer(cell)}
    return frozenset(answers - {cell.grade_id for cell in found.cells} if found.whole else answers)
