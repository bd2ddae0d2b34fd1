"""What is taken in of a submission: the week's files, as text, and a sentence for each that is not.

Files are opened without following links, and only regular ones of a sensible size are read. Nothing
else of a submission is looked at: no other module, no configuration, no notebook.
"""

import codecs
import os
from dataclasses import dataclass, field
from pathlib import Path

from grading.grader.untrusted import Unfit
from grading.grader.untrusted.files import read_file
from nanolm.impl import CONTRACT, ImplementationError

SIZE_LIMIT = 200_000  # bytes of one file; the reference's largest has 10,000
FOLDERS_LIMIT = 200  # entries of a submission that are looked at

MARKS = {  # byte order mark -> encoding; the long ones first, as one begins with another
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class Intake:
    """One submission as the grader holds it. It stands in for the implementation in the tests."""

    name: str
    texts: dict = field(default_factory=dict)  # module -> source text
    refused: dict = field(default_factory=dict)  # module -> sentence
    notes: tuple = ()  # sentences for the student about the submission as a whole

    @property
    def folder(self):
        """Where it comes from, for the header of a run."""
        return "a copy of the submission"

    @property
    def files(self):
        """{file name: text} for a worker."""
        return {f"{module}.py": text for module, text in self.texts.items()}

    def source(self, module):
        """The text of one file, as the tests may ask for it."""
        if module not in self.texts:
            raise ImplementationError(self.why_missing(module))
        return self.texts[module]

    def why_missing(self, module):
        """One sentence for a file that was not taken in; empty where it was."""
        if module in self.texts:
            return ""
        return self.refused.get(module) or f"{module}.py was not handed in."


class Refused(Exception):
    """A file that is not taken in; the message is one sentence."""


def take_in(folder, name=None):
    """The Intake of a submission: the week's files at the top of the folder, else in one folder below.

    Its name is the folder's, unless another is given.
    """
    folder = Path(folder)
    name = name or folder.name
    if folder.is_symlink() or not folder.is_dir():
        sentence = f"{folder.name} is not a folder: hand in the week's files in one."
        return Intake(name, refused=dict.fromkeys(CONTRACT, sentence))
    place, notes = _place(folder)
    texts, refused = {}, {}
    for module in CONTRACT if place else ():
        try:
            text = _text(place / f"{module}.py")
        except Refused as error:
            refused[module] = str(error)
        else:
            if text is not None:
                texts[module] = text
    return Intake(name, texts, refused, notes)


def _place(folder):
    """The folder that holds the week's files, and notes for the student."""
    if _holds_files(folder):
        return folder, ()
    with os.scandir(folder) as entries:
        below = sorted(entry.name for _, entry in zip(range(FOLDERS_LIMIT), entries, strict=False) if _is_dir(entry))
    found = [folder / name for name in below if _holds_files(folder / name)]
    if len(found) == 1:
        return found[0], ()
    names = ", ".join(f"{module}.py" for module in CONTRACT)
    if not found:
        return None, (f"none of the week's files was found: put {names} at the top, or in one folder.",)
    preferred = [place for place in found if place.name == "exercises_en"]
    if preferred:
        return preferred[0], ("several folders hold the week's files: exercises_en was graded.",)
    return None, ("several folders hold the week's files: hand in one.",)


def _is_dir(entry):
    return entry.is_dir(follow_symlinks=False)


def _holds_files(folder):
    return any(os.path.lexists(folder / f"{module}.py") for module in CONTRACT)


def _text(path):
    """The text of one file, None where there is none, or Refused."""
    data = _bytes(path)
    if data is None:
        return None
    encoding = next((name for mark, name in MARKS.items() if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Refused(
            f"{path.name} is not {encoding.removesuffix('-sig').upper()} text (byte {error.start}): save it as UTF-8."
        ) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise Refused(f"{path.name}, line {line}, holds a NUL byte: save it again as text.")
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in text.split("\n")):
        number = next(n for n, line in enumerate(text.split("\n"), 1) if line.startswith(("<<<<<<< ", ">>>>>>> ")))
        raise Refused(f"{path.name}, line {number}, holds the marks of a merge conflict: choose one version.")
    return text


def _bytes(path):
    try:
        return read_file(path, SIZE_LIMIT)
    except FileNotFoundError:
        return None
    except Unfit as error:
        raise Refused(f"{path.name} {error}.") from None
