"""What is in a .zip that somebody handed in, under one budget for all that one person's archives hold, however nested.

Nothing is unpacked to disk, nothing is unpacked that nobody reads, and no more of it than the budget has.
"""

import stat
import time
import zipfile
from dataclasses import dataclass

from grading.grader.untrusted import Unfit

MB = 1_000_000
SIZE = 300 * MB  # bytes of all that is unpacked of one person's archives
ENTRIES = 20_000  # files in them
SECONDS = 30  # of the processor
DIRECTORY = 4 * MB  # bytes of one archive's table of files
PIECE = 4096  # bytes at a time; bzip2 may make 80 MB of so many, and there is no way to ask it for less

METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA}
OTHER_METHODS = {9: "Deflate64", 93: "Zstandard", 95: "XZ", 96: "JPEG", 98: "PPMd"}
LOCKED, UTF8 = 0x1 | 0x40, 0x800  # bits of a file's flags
AES = 99
USUAL = "ask for a .zip made in the usual way"
MAGIC = (
    (0, b"Rar!", "a RAR archive"), (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"), (0, b"\x1f\x8b", "a gzip file"),
    (0, b"BZh", "a bzip2 file"), (0, b"\xfd7zXZ", "an xz file"), (0, b"\x28\xb5\x2f\xfd", "a Zstandard file"),
    (257, b"ustar", "a tar archive"), (0, b"%PDF", "a PDF"), (0, b"MSCF", "a cabinet archive"),
)  # fmt: skip


class Budget:
    """What all that one person handed in may cost together. Once it is spent nothing more is read of it."""

    def __init__(self, size=SIZE, entries=ENTRIES, seconds=SECONDS):
        self._most = size, entries, seconds
        self._size = self._entries = 0
        self._start = time.thread_time()  # not by the clock: a busy machine takes nobody's work

    def spend(self, size=0, entries=0):
        """Count what is about to be used; Unfit where that is more than there is."""
        self._size += size
        self._entries += entries
        most, files, seconds = self._most
        if self._size > most:
            raise Unfit(f"makes more than {most // MB} MB with all that is in it: ask for the week's files only")
        if self._entries > files:
            raise Unfit(f"makes more than {files:,} files with all that is in it: ask for the week's files only")
        if time.thread_time() - self._start > seconds:
            raise Unfit(f"takes more than {seconds} seconds to unpack: ask for the week's files only")


@dataclass(frozen=True)
class Entry:
    """A file in an archive: its path as written there, how to open it, and why it can't be used, if so."""

    path: str
    open: object
    trouble: str = ""  # a half-sentence
    leads_out: bool = False  # whether the path is made to lead out of where it is unpacked


def read_stream(opener, limit, budget):
    """All bytes of a stream, at most `limit` of them; Unfit where it has more, is damaged, or the budget is spent."""
    pieces, size = [], 0
    try:
        with opener() as stream:
            while piece := stream.read(PIECE):
                size += len(piece)
                budget.spend(size=len(piece))
                if size > limit:
                    raise Unfit(f"has more than {limit // MB} MB: ask for the week's files only")
                pieces.append(piece)
    except (Unfit, FileNotFoundError):
        raise
    except Exception:  # whatever a decompressor raises on bytes that were made to break it
        raise Unfit("is damaged or can't be read: ask for it again") from None
    return b"".join(pieces)


def entries_of(stream, budget, directory=DIRECTORY):
    """The files of the .zip in a stream, which must stay open as long as they are read; Unfit where it is none."""
    try:
        archive = zipfile.ZipFile(_Bounded(stream, directory))
        budget.spend(entries=len(archive.filelist))
        return [_entry(archive, info) for info in archive.filelist if not info.is_dir()]
    except Unfit:
        raise
    except Exception:  # as above
        raise Unfit(_what_else(stream)) from None


class _Bounded:
    """A stream that gives so many bytes at a time: zipfile reads the table of an archive's files in one piece."""

    def __init__(self, stream, limit):
        self._stream, self._limit = stream, limit
        self.seek, self.tell, self.seekable, self.close = stream.seek, stream.tell, stream.seekable, stream.close

    def read(self, size=-1):
        most = self._limit + 1
        data = self._stream.read(most if size is None or size < 0 else min(size, most))
        if len(data) == most:
            raise Unfit("lists too many files: ask for the week's files only")
        return data


def _entry(archive, info):
    path = _path(info)
    name = path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    trouble, leads_out = "", False
    if ".." in path.replace("\\", "/").split("/") or path.startswith(("/", "\\")) or path[1:2] == ":":
        trouble, leads_out = f'the path "{path}" leads out of it: {USUAL}', True
    elif stat.S_ISLNK(info.external_attr >> 16):
        trouble = f"{name} is a link: ask for the file itself"
    elif info.flag_bits & LOCKED or info.compress_type == AES:
        trouble = f"{name} is locked with a password: ask for it without one"
    elif info.compress_type not in METHODS:
        method = OTHER_METHODS.get(info.compress_type, f"the method {info.compress_type}")
        trouble = f"{name} is packed by {method}, which can't be read here: {USUAL}"
    return Entry(path, lambda: archive.open(info), trouble, leads_out)


def _path(info):
    """The name in a zip: some programs write UTF-8 and don't say so, which reads as the IBM PC's letters."""
    if not info.flag_bits & UTF8:
        try:
            return info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            pass
    return info.filename


def _what_else(stream):
    """What a file is that was taken for a .zip."""
    try:
        stream.seek(0)
        start = stream.read(512)
    except (OSError, ValueError):
        start = b""
    for at, magic, kind in MAGIC:
        if start[at : at + len(magic)] == magic:
            return f"is {kind} and no .zip file: ask for a .zip"
    return "is no sound .zip file (cut short, or renamed?): ask for it again"
