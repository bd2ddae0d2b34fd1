"""What is taken in of a submission: the week's files and every .py beside them, and why others are not.

Files are opened without following links, and only regular ones of a sensible size are read. Nothing
else of a submission is looked at: no data, no configuration, no notebook.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path

from grading.grader.untrusted import Unfit
from grading.grader.untrusted.files import read_file
from nanolm.impl import CONTRACT
from nanolm.source import (
    BYTES_LIMIT,
    DEEPEST,
    ENTRIES_LIMIT,
    FILE_LIMIT,
    FILES_LIMIT,
    SourceError,
    entries,
    is_folder,
    python_files,
    text_of,
)


@dataclass(frozen=True)
class Intake:
    """One submission as the grader holds it. It stands in for the implementation in the tests."""

    name: str
    texts: dict = field(default_factory=dict)  # module -> source text
    refused: dict = field(default_factory=dict)  # module -> sentence
    notes: tuple = ()  # sentences for the student about the submission as a whole
    beside: dict = field(default_factory=dict)  # path of another .py from the week's files on -> source text
    place: tuple = ()  # names of the folders of the submission down to the week's files

    @property
    def folder(self):
        """Where it comes from, for the header of a run."""
        return "a copy of the submission"

    @property
    def files(self):
        """{path: text} of all that is taken in."""
        return {f"{module}.py": text for module, text in self.texts.items()} | self.beside

    def not_provided(self):
        """A worker says so, when it imports them."""
        return {}

    def why_missing(self, module):
        """One sentence for a file that was not taken in; empty where it was."""
        if module in self.texts:
            return ""
        return self.refused.get(module) or f"{module}.py was not handed in."


class Refused(Exception):
    """A file that is not taken in; the message is one sentence."""


def take_in(folder, name=None):
    """The Intake of a submission: the week's files at its top, else in the one folder below that has them.

    Its name is the folder's, unless another is given.
    """
    folder = Path(folder)
    name = name or folder.name
    if folder.is_symlink() or not folder.is_dir():
        sentence = f"{folder.name} is not a folder: hand in the week's files in one."
        return Intake(name, refused=dict.fromkeys(CONTRACT, sentence))
    place, notes = _place(folder)
    if place is None:
        return Intake(name, notes=notes)
    texts, refused = {}, {}
    for module in CONTRACT:
        try:
            text = _text(place / f"{module}.py")
        except Refused as error:
            refused[module] = str(error)
        else:
            if text is not None:
                texts[module] = text
    beside, more = _beside(place, texts)
    return Intake(name, texts, refused, (*notes, *more), beside, place.relative_to(folder).parts)


def _place(folder):
    """The folder that holds the week's files, and notes for the student."""
    level = [folder]
    for _ in range(DEEPEST + 1):
        found = [place for place in level if _holds_files(place)]
        if len(found) == 1:
            return found[0], ()
        if found:
            preferred = [place for place in found if place.name == "exercises_en"]
            if len(preferred) == 1:
                return preferred[0], ("several folders hold the week's files: exercises_en was graded.",)
            return None, ("several folders hold the week's files: hand in one.",)
        level = [place / name for place in level for name in entries(place) if is_folder(place / name)]
        level = level[:ENTRIES_LIMIT]
    names = ", ".join(f"{module}.py" for module in CONTRACT)
    return None, (f"none of the week's files was found: put {names} at the top, or in one folder.",)


def _holds_files(folder):
    return any(os.path.lexists(folder / f"{module}.py") for module in CONTRACT)


def _beside(place, texts):
    """{path: text} of the other Python files, the nearest first, and notes about those that are not taken."""
    found, left, notes = {}, [], []
    size = sum(len(text.encode()) for text in texts.values())
    for path in python_files(place):
        name = path.relative_to(place).as_posix()
        if name.removesuffix(".py") in CONTRACT:
            continue
        try:
            text = _text(path, name) if len(texts) + len(found) < FILES_LIMIT else None
        except Refused as error:
            notes.append(str(error))
            continue
        if text is None or size + len(text.encode()) > BYTES_LIMIT:
            left.append(name)
            continue
        size += len(text.encode())
        found[name] = text
    if left:
        limit = f"of a submission {FILES_LIMIT} Python files of {BYTES_LIMIT >> 20} MiB together are taken"
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        notes.append(f"{limit}: without {left[0]}{more}.")
    return found, notes


def _text(path, name=None):
    """The text of one file, None where there is none, or Refused."""
    name = name or path.name
    try:
        return text_of(read_file(path, FILE_LIMIT), name)
    except FileNotFoundError:
        return None
    except Unfit as error:
        raise Refused(f"{name} {error}.") from None
    except SourceError as error:
        raise Refused(str(error)) from None
