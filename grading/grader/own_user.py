"""Student code as another user, where no namespaces can be made: in most containers root may still do that.

The course's code lies in a copy that everybody can read, without tests, answers and grader; whoever runs us closes the
folders in which those lie.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from grading.grader.bubblewrap import COURSE_FILES

FIRST, EACH = 2_000_000, 100_000  # uids that no system gives out, for each slot
LEAST, FEW = 20_000, 1_000  # where a container has fewer


def possible():
    """Whether we are root, and others can run this Python with its packages."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    needed = (sys.executable, os.__file__, sysconfig.get_path("purelib"))
    return all(_open_to_others(Path(path).resolve()) for path in needed)


def _open_to_others(path):
    ways = all(folder.stat().st_mode & 0o001 for folder in path.parents)
    return ways and bool(path.stat().st_mode & 0o004)


def uids(slot):
    """(first, how many) of the users of a slot's workers, one for each, that this machine or container has."""
    first = FIRST + slot * EACH
    for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
        start, _, count = map(int, line.split())
        if start <= first and first + EACH <= start + count:
            return first, EACH
    return LEAST + slot * FEW, FEW


def lay_course(folder):
    """A copy of what student code may import, below `folder`; the place that goes on Python's path."""
    course = Path(folder) / "course"
    for source, target in COURSE_FILES:
        place = course / target
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, place)
    for path in (course, *course.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return course
