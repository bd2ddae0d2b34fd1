"""What lies in a folder or an archive, however deep: items with a path, read with limits and without links.

Nothing is unpacked to disk, and an item's path is only ever compared with names that we know, so no path
can lead out of anywhere. What can't be opened becomes a sentence beside its path.
"""

import io
import lzma
import os
import stat
import struct
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

FILE_LIMIT = 20_000_000  # bytes of one file; the notebook with its outputs is the largest
ARCHIVE_LIMIT = 200_000_000  # bytes of an archive inside another
ENTRIES_LIMIT = 20_000  # of one folder or archive
DEPTH = 12  # folders inside folders
NESTING = 3  # archives inside archives
ARCHIVES = (".zip",)
OTHER_ARCHIVES = (".rar", ".7z", ".gz", ".tgz", ".tar", ".bz2", ".xz")
BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, NotImplementedError, OSError)

JUNK_FOLDERS = {"__macosx", "__pycache__", ".ipynb_checkpoints", ".git", ".venv", "venv", "node_modules", ".idea"}
JUNK_FILES = {".ds_store", "thumbs.db", "desktop.ini", ".gitignore"}


class Unreadable(Exception):
    """An item that can't be used; the message is one sentence: what is wrong, and what to do."""


@dataclass(frozen=True)
class Item:
    """A file in a parcel: its path in parts, and how to get its bytes."""

    parts: tuple
    open: object  # () -> binary stream, or raises one of BROKEN
    trouble: str = ""  # why it can't be used, if so
    serious: bool = False  # whether to say so even where the file's name means nothing to us
    disk: Path | None = None  # where it lies, if on disk: a large archive is then not read into memory

    @property
    def name(self):
        return self.parts[-1]

    @property
    def path(self):
        return "/".join(self.parts)

    def read(self, limit=FILE_LIMIT):
        """All bytes, or Unreadable. No more than the limit is ever unpacked."""
        if self.trouble:
            raise Unreadable(self.trouble)
        try:
            with self.open() as stream:
                data = stream.read(limit + 1)
        except RuntimeError:
            raise Unreadable(f"{self.name} is locked with a password: ask for it without one.") from None
        except BROKEN:
            raise Unreadable(f"{self.name} is damaged or can't be read: ask for it again.") from None
        if len(data) > limit:
            raise Unreadable(f"{self.name} has more than {limit // 1_000_000} MB: ask for the week's files only.")
        return data

    def below(self, parts):
        """The same item under other parts."""
        return replace(self, parts=tuple(parts))


def is_archive(name):
    """Whether a file of this name is opened and looked into."""
    return name.lower().endswith(ARCHIVES)


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
        found = _of_zip(path, path.name)
    else:
        raise Unreadable(f"{path} is neither a folder nor a .zip file: name what the platform gave you.")
    return sorted((item for item in found if not is_junk(item.parts)), key=lambda item: item.parts)


def opened(items, nesting=NESTING):
    """The items, with the content of archives in place of these."""
    for item in items:
        if item.trouble or not is_archive(item.name):
            if item.name.lower().endswith(OTHER_ARCHIVES) and not item.trouble:
                item = replace(item, trouble=f"{item.name} is no .zip file: ask for a .zip.", serious=True)
            yield replace(item, serious=item.serious or is_archive(item.name))
            continue
        if nesting == 0:
            deep = f"{item.name} is an archive in an archive in an archive: ask for one .zip."
            yield replace(item, trouble=deep, serious=True)
            continue
        yield from opened(inside(item), nesting - 1)


def inside(item):
    """The items of one archive, not further opened, below a folder of its name."""
    try:
        source = item.disk or io.BytesIO(item.read(ARCHIVE_LIMIT))
        found = list(_of_zip(source, item.name))
    except Unreadable as error:
        return [replace(item, trouble=str(error), serious=True)]
    folder = (*item.parts[:-1], item.name[: -len(".zip")])
    return [below.below((*folder, *below.parts)) for below in found if not is_junk(below.parts)]


def _of_folder(top):
    count = 0
    waiting = [(top, ())]
    while waiting:
        folder, parts = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            yield Item(parts or (top.name,), None, f"{folder.name} can't be read: check its permissions.", True)
            continue
        for entry in entries:
            count += 1
            inner = (*parts, normal(entry.name))
            if count > ENTRIES_LIMIT:
                yield Item(inner, None, f"more than {ENTRIES_LIMIT:,} files: ask for the week's files only.", True)
                return
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
    return lambda: os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _of_zip(source, name):
    """The items of a zip; `source` is a path or a stream that stays open as long as they are used."""
    try:
        archive = zipfile.ZipFile(source)
    except (*BROKEN, ValueError, RuntimeError):
        raise Unreadable(f"{name} is no sound .zip file (cut short, or renamed?): ask for it again.") from None
    entries = archive.infolist()
    for info in entries[:ENTRIES_LIMIT]:
        if info.is_dir():
            continue
        raw = _file_name(info)
        parts = tuple(normal(part) for part in raw.replace("\\", "/").split("/") if part not in ("", "."))
        if not parts:
            continue
        trouble, leads_out = "", False
        if ".." in parts or raw.startswith(("/", "\\")) or raw[1:2] == ":":
            trouble = f'the path "{raw}" leads out of {name}: ask for a .zip made in the usual way.'
            parts, leads_out = (parts[-1],), True
        elif stat.S_ISLNK(info.external_attr >> 16):
            trouble = f"{parts[-1]} is a link: ask for the file itself."
        yield Item(parts, lambda info=info: archive.open(info), trouble, leads_out)
    if len(entries) > ENTRIES_LIMIT:
        yield Item((name,), None, f"{name} has more than {ENTRIES_LIMIT:,} files: ask for the week's files only.", True)


def _file_name(info):
    """The name in a zip: some programs write UTF-8 and don't say so, which reads as the IBM PC's letters."""
    if not info.flag_bits & 0x800:
        try:
            return info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return info.filename


def normal(name):
    """A name with its letters composed: macOS takes accents apart."""
    return unicodedata.normalize("NFC", name)
