"""What lies in a folder or an archive, however deep: items with a path, read with limits and without links.

Nothing is unpacked to disk, and an item's path is only ever compared with names that we know, so no path
can lead out of anywhere. What can't be opened becomes a sentence beside its path. What one person handed in
never keeps another one's from being read: limits are counted for each top entry, then for each person.
"""

import io
import os
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from grading.grader.untrusted import Unfit
from grading.grader.untrusted.archives import ENTRIES, Budget, entries_of, read_stream
from grading.grader.untrusted.files import open_file

FILE_LIMIT = 20_000_000  # bytes of one file; the notebook with its outputs is the largest
ARCHIVE_LIMIT = 200_000_000  # bytes of an archive inside another
SOURCE_DIRECTORY = 64_000_000  # bytes of the table of files of what a platform gave: a class of thousands
DEPTH = 12  # folders inside folders
ONLY = "ask for the week's files only"
NESTING = 3  # archives inside archives
ARCHIVES = (".zip",)
OTHER_ARCHIVES = (".rar", ".7z", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".zst", ".zipx", ".cab")

JUNK_FOLDERS = {"__macosx", "__pycache__", ".ipynb_checkpoints", ".git", ".venv", "venv", "node_modules", ".idea"}
JUNK_FILES = {".ds_store", "thumbs.db", "desktop.ini", ".gitignore"}


class Unreadable(Exception):
    """An item that can't be used; the message is one sentence: what is wrong, and what to do."""


@dataclass(frozen=True)
class Item:
    """A file in a source: its path in parts, and how to get its bytes."""

    parts: tuple
    open: object  # () -> binary stream
    trouble: str = ""  # why it can't be used, if so
    serious: bool = False  # whether to say so even where the file's name means nothing to us
    disk: Path | None = None  # where it lies, if on disk: a large archive is then not read into memory

    @property
    def name(self):
        return self.parts[-1]

    @property
    def path(self):
        return "/".join(self.parts)

    def read(self, budget, limit=FILE_LIMIT):
        """All bytes, or Unreadable. No more than the limit is ever unpacked."""
        if self.trouble:
            raise Unreadable(self.trouble)
        try:
            return read_stream(self.open, limit, budget)
        except FileNotFoundError:
            raise Unreadable(f"{self.name} is gone: collect again.") from None
        except Unfit as error:
            raise Unreadable(f"{self.name} {error}.") from None

    def below(self, parts):
        """The same item under other parts."""
        return replace(self, parts=tuple(parts))


def is_archive(name):
    """Whether a file of this name is opened and looked into."""
    return name.lower().endswith(ARCHIVES)


def is_other_archive(name):
    """Whether a file of this name is packed in a way that is not opened."""
    return name.lower().endswith(OTHER_ARCHIVES)


def is_junk(parts):
    """Whether systems and editors leave this behind, and no student means it."""
    *folders, name = (part.casefold() for part in parts)
    return name in JUNK_FILES or name.startswith("._") or any(folder in JUNK_FOLDERS for folder in folders)


def items_of(path):
    """The items of a folder or a zip on disk, in the order of their names. Unreadable where it is neither."""
    path = Path(path)
    if path.is_dir():
        found = _of_folder(path)
    elif path.is_file() and is_archive(path.name):
        try:
            found = list(_of_zip(path.open("rb"), Budget(entries=float("inf")), SOURCE_DIRECTORY))
        except Unfit as error:
            raise Unreadable(f"{path.name} {error}.") from None
    else:
        raise Unreadable(f"{path} is neither a folder nor a .zip file: name what the platform gave you.")
    return sorted((item for item in found if not is_junk(item.parts)), key=lambda item: item.parts)


def opened(items, budget, nesting=NESTING):
    """The items, with the content of archives in place of these; when the budget is spent, that is the last."""
    for item in items:
        try:
            budget.spend(entries=1)
        except Unfit as error:
            yield replace(item, trouble=f"{item.name} {error}.", serious=True)
            return
        if item.trouble or not is_archive(item.name):
            if is_other_archive(item.name) and not item.trouble:
                item = replace(item, trouble=f"{item.name} is no .zip file: ask for a .zip.", serious=True)
            yield replace(item, serious=item.serious or is_archive(item.name))
            continue
        if nesting == 0:
            deep = f"{item.name} is an archive in an archive in an archive: ask for one .zip."
            yield replace(item, trouble=deep, serious=True)
            continue
        yield from opened(inside(item, budget), budget, nesting - 1)


def inside(item, budget, directory=None):
    """The items of one archive, not further opened, below a folder of its name."""
    try:
        stream = open_file(item.disk) if item.disk else io.BytesIO(item.read(budget, ARCHIVE_LIMIT))
        found = list(_of_zip(stream, budget, *([directory] if directory else [])))
    except Unreadable as error:
        return [replace(item, trouble=str(error), serious=True)]
    except (Unfit, FileNotFoundError) as error:
        what = error if isinstance(error, Unfit) else "is gone: collect again"
        return [replace(item, trouble=f"{item.name} {what}.", serious=True)]
    folder = (*item.parts[:-1], item.name[: -len(".zip")])
    return [below.below((*folder, *below.parts)) for below in found if not is_junk(below.parts)]


def _of_folder(top):
    count, full = Counter(), set()  # of the files below each top entry
    waiting = [(top, ())]
    while waiting:
        folder, parts = waiting.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(islice(found, ENTRIES + 1) if parts else found, key=lambda entry: entry.name)
        except OSError:
            yield Item(parts or (top.name,), None, f"{folder.name} can't be read: check its permissions.", True)
            continue
        for entry in entries:
            inner = (*parts, entry.name)
            count[inner[0]] += 1
            if inner[0] in full:
                break
            if count[inner[0]] > ENTRIES:
                full.add(inner[0])
                yield Item(inner, None, f"{inner[0]} has more than {ENTRIES:,} files: {ONLY}.", True)
                break
            if entry.is_symlink():
                yield Item(inner, None, f"{entry.name} is a link: ask for the file itself.")
            elif entry.is_dir():
                if len(inner) < DEPTH and entry.name.casefold() not in JUNK_FOLDERS:
                    waiting.append((Path(entry.path), inner))
            elif entry.is_file():
                yield Item(inner, _opener(entry.path), disk=Path(entry.path))
            else:
                yield Item(inner, None, f"{entry.name} is not a plain file: ask for the file itself.")


def _opener(path):
    return lambda: open_file(path)


def _of_zip(stream, budget, *directory):
    """The items of the .zip in a stream, which stays open as long as they are used."""
    for entry in entries_of(stream, budget, *directory):
        parts = tuple(part for part in entry.path.replace("\\", "/").split("/") if part not in ("", "."))
        if parts:
            trouble = f"{entry.trouble}." if entry.trouble else ""
            yield Item(parts[-1:] if entry.leads_out else parts, entry.open, trouble, entry.leads_out)
