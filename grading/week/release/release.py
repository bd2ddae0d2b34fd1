"""The release of the week: the bundle as folder and zip, and the course's nbgrader release, checked for leaks.

    OUT/nanolm-week06/       what a student unpacks
    OUT/nanolm-week06.zip    what a student downloads
    OUT/nanolm-week06-hub.zip  what a JupyterHub installs, so that a week fetched from nbgrader's exchange works there
    OUT/course/              nbgrader's course; its source/week06 and release/week06 hold the same files

What is checked are the files that lie there at the end.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from grading.week.course import set_up
from grading.week.release.bundle import ASSIGNMENT, HUB, NAME, hub_files, student_files, write_folder, zipped
from grading.week.release.errors import LeakError, ReleaseError
from grading.week.release.leaks import Guard

NOTEBOOK = f"{ASSIGNMENT}.ipynb"


@dataclass(frozen=True)
class Release:
    """Where a release lies."""

    folder: Path
    zip: Path
    hub: Path
    course: Path
    files: int


def make_release(out):
    """Make the release in the folder `out`; the Release. LeakError, with nothing put in place, where a file leaks.

    Run again it gives the same bytes. ReleaseError where `out` holds something that would be lost.
    """
    out = Path(out).absolute()
    folder, archive, hub, course = out / NAME, out / f"{NAME}.zip", out / HUB, out / "course"
    files = student_files()
    released = course / "release" / ASSIGNMENT
    _refuse_to_lose(folder, {*files, NOTEBOOK})
    set_up(course)
    with tempfile.TemporaryDirectory(dir=out) as room:
        new_folder, new_zip, new_hub = (Path(room) / name for name in (NAME, archive.name, HUB))
        try:
            files = _release_in_nbgrader(course, files, released)
            write_folder(files, new_folder)
            new_zip.write_bytes(zipped(files))
            new_hub.write_bytes(zipped(hub_files(files)))
            _refuse_extras(released, files)
            _refuse_leaks(new_folder, new_zip, new_hub, released)
        except ReleaseError:
            shutil.rmtree(released, ignore_errors=True)  # nbgrader would hand it out
            raise
        if folder.exists():
            shutil.rmtree(folder)
        new_folder.rename(folder)
        new_zip.replace(archive)
        new_hub.replace(hub)
    return Release(folder, archive, hub, course, len(files))


def leaks_in(*places):
    """Every Leak in folders and files as they lie there."""
    guard = Guard()
    paths = [(place, path) for place in places for path in _files_of(place)]
    return [
        leak
        for place, path in paths
        for leak in guard.leaks(path.relative_to(place.parent).as_posix(), path.read_bytes())
    ]


def _files_of(place):
    return [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())


def _refuse_leaks(*places):
    leaks = leaks_in(*places)
    if leaks:
        raise LeakError(leaks)


def _refuse_extras(released, files):
    """What lies in the course's source/ goes out with nbgrader's release, so it must be of the bundle."""
    for path in _files_of(released):
        name = path.relative_to(released).as_posix()
        if name not in files:
            raise ReleaseError(
                f"{name} lies in the course's source/{ASSIGNMENT} and is not of the bundle, "
                f"but nbgrader releases all that lies there: take it out."
            )


def _refuse_to_lose(folder, paths):
    """Nothing that is not of an earlier release may lie where this one goes."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and path.relative_to(folder).as_posix() not in paths:
            raise ReleaseError(f"{path} is not of a release and would be lost: move it away, or name another --out.")


def _release_in_nbgrader(course, files, released):
    """The files with the week's notebook as nbgrader releases it; source/ and release/ of the course hold them too."""
    write_folder(files, course / "source" / ASSIGNMENT)
    # A new gradebook makes nbgrader call the command alembic, which lies beside this Python.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    run = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", ASSIGNMENT, "--force"],
        cwd=course, env={**os.environ, "PATH": path}, capture_output=True, text=True, encoding="utf-8",
        errors="replace",
    )  # fmt: skip
    if run.returncode or not (released / NOTEBOOK).is_file():
        said = [line.strip() for line in run.stderr.splitlines() if line.strip()] or ["it said nothing"]
        reasons = [line for line in said if re.match(r"[\w.]+(Error|Exception): ", line)] or said
        raise ReleaseError(f"nbgrader generate_assignment {ASSIGNMENT} failed in {course}: {reasons[-1]}")
    files = {**files, NOTEBOOK: (released / NOTEBOOK).read_bytes()}
    write_folder(files, released)  # nbgrader leaves out notebooks in folders
    return files
