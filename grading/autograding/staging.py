"""A copy of a submission that holds only what is graded, for nbgrader to work on.

nbgrader copies, opens and skips what it finds in submitted/. A submission may hold no notebook, a broken one, links,
pipes: so nbgrader is shown a sound copy, and what was handed in stays as it is.
"""

import fnmatch
import os
from dataclasses import dataclass
from pathlib import Path

import nbformat

from grading.autograding.answers import rebuild
from grading.autograding.reading import read_submission
from grading.grader.intake import take_in

TIMESTAMP = "timestamp.txt"
EXERCISES = "exercises_en"


@dataclass(frozen=True)
class Staged:
    """A submission as nbgrader will see it."""

    student: str
    handed_in: Path
    folder: Path
    notes: tuple  # sentences for the student about the notebook


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
    plain = handed_in.is_dir() and not handed_in.is_symlink()
    cells, notes = read_submission(handed_in, assignment) if plain else ([], [])
    notebook, about = rebuild(released, cells)
    nbformat.write(notebook, folder / f"{assignment}.ipynb")
    for name, text in take_in(handed_in).files.items():
        (folder / EXERCISES / name).write_text(text, encoding="utf-8", errors="replace", newline="\n")
    if plain and (handed_in / TIMESTAMP).is_file():
        (folder / TIMESTAMP).write_bytes((handed_in / TIMESTAMP).read_bytes()[:200])
    return Staged(student, handed_in, folder, (*notes, *about))
