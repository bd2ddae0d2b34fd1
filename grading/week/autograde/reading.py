"""The notebook of a submission: whole, renamed, cut off, with a conflict in it, or none at all."""

import os
from dataclasses import dataclass
from pathlib import Path

from grading.grader.untrusted import Unfit
from grading.grader.untrusted.files import read_file
from grading.grader.untrusted.notebooks import SIZE, SMALLER, read_notebook

FOLDERS_LIMIT = 200  # entries of a submission that are looked at


@dataclass(frozen=True)
class Read:
    """The cells of a submission's notebook, sentences for the student, and whether that is all that was written."""

    cells: list
    notes: tuple
    whole: bool


def read_submission(folder, name):
    """The Read of the notebook `name`.ipynb in a submission."""
    notes, candidates = [], _candidates(Path(folder), name)
    for path in candidates:
        shown = path.relative_to(folder).as_posix()
        try:
            found = read_notebook(read_file(path, SIZE, SMALLER))
        except FileNotFoundError:
            continue
        except Unfit as error:
            notes.append(f"{shown} {error}.")
            continue
        if shown != f"{name}.ipynb":
            notes.append(f"your notebook was taken from {shown}: name it {name}.ipynb.")
        elif len(candidates) > 1:
            notes.append(f"of {len(candidates)} notebooks {shown} was read: hand in one.")
        notes += (f"{shown} {sentence}" for sentence in found.notes)
        return Read(found.cells, tuple(notes), found.whole and len(candidates) == 1 and bool(found.cells))
    if not notes:
        notes.append(f"{name}.ipynb was not handed in.")
    return Read([], (*notes, "Your written answers could not be read; the code is graded without them."), False)


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
