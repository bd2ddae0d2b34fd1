"""submitted/STUDENT/week06/: written whole or not at all; what was there before is put aside, never deleted."""

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from grading.grader.untrusted import Unfit
from grading.grader.untrusted.files import read_file
from grading.week.collect import ASSIGNMENT, CODE
from grading.week.collect.items import FILE_LIMIT
from grading.week.collect.names import FILES
from grading.week.feedback_key import KEY
from grading.week.times import TIMESTAMP, TimeError, time_in, write_time
from nanolm.source import python_files

NEW, UPDATED, UNCHANGED, KEPT = "new", "updated", "unchanged", "kept"
ASIDE = "replaced"  # of the course folder: what a later attempt has replaced
PREFIX = ".collect-"  # a submission that is being written; nbgrader looks at no name with a dot


class Store:
    """The submissions of a course."""

    def __init__(self, course):
        self.course = course
        self.root = Path(course.directory.root, course.directory.submitted_directory)

    @contextmanager
    def alone(self):
        """Hold the folder for one intake, after clearing what a stopped one has left half-written."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / ".lock").open("w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OSError(f"another intake is writing into {self.root}: wait for it") from None
            for left in self.root.glob(f"{PREFIX}*"):
                shutil.rmtree(left)
            yield

    def students(self):
        """Who has a submission, from now or from an earlier intake."""
        return {path.parent.name for path in self.root.glob(f"*/{ASSIGNMENT}") if path.is_dir()}

    def put(self, attempt):
        """Store an attempt; which of NEW, UPDATED, UNCHANGED (it is there) and KEPT (a later one is there) it was."""
        place = self.course.submitted(attempt.student, ASSIGNMENT)
        before, stamp = _held(place), _stamp(place)
        key = {KEY: before[KEY]} if KEY in before else {}  # which only the exchange gives
        if before == {**key, **attempt.files} and attempt.time in (None, stamp):
            return UNCHANGED
        if before and attempt.time and stamp and attempt.time < stamp:
            return KEPT
        new = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self.root))
        try:
            write_files(new, attempt.files, attempt.time)
            new.chmod(0o755)
            place.parent.mkdir(parents=True, exist_ok=True)
            existed = os.path.lexists(place)
            if existed:
                os.rename(place, self._aside(attempt.student))
            os.rename(new, place)
        except OSError:
            shutil.rmtree(new, ignore_errors=True)  # a full disk gets its room back
            raise
        return UPDATED if existed else NEW

    def _aside(self, student):
        """A free place for what is replaced."""
        folder = self.course.folder / ASIDE / ASSIGNMENT / student
        folder.mkdir(parents=True, exist_ok=True)
        return folder / str(1 + max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=0))


def write_files(folder, files, time):
    """Write a submission's files, and its time if that is known, so that they are on the disk on return."""
    texts = {TIMESTAMP: f"{write_time(time)}\n".encode()} if time else {}
    for name, data in {**files, **texts}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())


def _held(place):
    """{name: bytes} of what is in place; None for bytes that can't be read, so that it is not what comes."""
    there = {place / name for name in (*FILES, KEY)} | set(python_files(place / CODE))
    return {path.relative_to(place).as_posix(): _bytes(path) for path in there if os.path.lexists(path)}


def _bytes(path):
    try:
        return read_file(path, FILE_LIMIT)
    except (Unfit, FileNotFoundError):
        return None


def _stamp(place):
    try:
        return time_in(place)
    except TimeError:
        return None
