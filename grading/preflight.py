"""What a command needs of the machine, asked for before its first step: a sentence for each thing that is missing, with
the command that brings it. Nothing that takes long, or that is only found out by doing it, is asked here."""

import importlib
import importlib.metadata
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path
from types import SimpleNamespace

from grading.paths import ROOT

GRADING_MEMORY = 1.5  # GB: the tests with torch, the workers' torch and what two submissions take; an estimate
NO_CHROMIUM = "there is no Chromium with its driver here: apt-get install chromium chromium-driver"
TRIAL_DISK = 4  # GB: an environment of a student's packages, torch for the CPU


def missing(command, args=None):
    """A sentence for each thing that `command` lacks here. Without `args`: of those that don't depend on them."""
    part, *needs = NEEDS.get(command, ("student",))
    if sentence := packages(part, [need for need in needs if isinstance(need, str)]):
        return [sentence]  # what needs them can't be asked without
    needs = [need for need in needs if callable(need)]
    return [sentence for need in needs if (sentence := need(args))] if args else []


def packages(part, only=()):
    """Which packages of a part of the course, or only these, are not installed, and what installs them; "" for none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    named = [extras[name] for name in project["tool"]["set_up"][part] if name in extras]
    wanted = [text for texts in (project["project"]["dependencies"], *named) for text in texts if ";" not in text]
    lacking = [name for name in only or wanted if not _installed(name)]
    if not lacking:
        return ""
    return f"{_these(lacking)} not installed in {sys.prefix}: python3 set_up.py {part}"


def walls(args=None):
    """Why student code can't be walled in here; "" where it can, or where nobody asks for it."""
    if getattr(args, "unsandboxed", False):
        return ""
    return _room("grading.grader.bubblewrap").no_walls()


def grading_memory(args):
    """Too little memory to grade in."""
    free = free_memory()
    if free is None or free >= GRADING_MEMORY:
        return ""
    return f"grading takes {GRADING_MEMORY:g} GB of memory, and {free:.1f} GB are free: end other programs"


def disk(gigabytes, where):
    """A need of so much room, and of leave to write, at the place that `where` finds in the arguments."""

    def need(args):
        place = where(args)
        if place is None:
            return ""
        there = next(folder for folder in (place, *place.parents) if folder.exists())
        if not os.access(there, os.W_OK):
            return f"{there} can't be written into: take another place, or ask for the right to write there"
        free = shutil.disk_usage(there).free / 1e9
        return f"{there} has {free:.1f} GB left, and {gigabytes:g} GB are needed: make room" if free < gigabytes else ""

    return need


def gradebook(args):
    """Why a course's PostgreSQL server can't be used; SQLite's file is the first that a command opens anyway."""
    courses = _room("grading.week.course_folder")
    try:
        return _room("grading.week.databases").unreachable(courses.Course(args.course).db_url)
    except courses.CourseError as error:
        return str(error)


def trial(args):
    """What a release needs to be tried, where that is asked for."""
    if not args.try_it:
        return ""
    lacking = [program for program in ("bash", "python3") if shutil.which(program) is None]
    if lacking:
        return f"--try runs the students' own commands, and {_these(lacking)} not on the PATH"
    return disk(TRIAL_DISK, lambda args: Path(tempfile.gettempdir()))(args)


def browser():
    """Why no page can be opened in a real browser here."""
    if chromium() and shutil.which("chromedriver"):
        return ""
    return NO_CHROMIUM


def chromium():
    """The browser's program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


def postgresql():
    """Why no PostgreSQL server can be started here."""
    if postgresql_program("initdb") is None or postgresql_program("pg_ctl") is None:
        return "there is no PostgreSQL server here: apt-get install postgresql"
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        return "PostgreSQL refuses root, and there is no setpriv to become another user: apt-get install util-linux"
    return ""


def postgresql_program(name):
    """One of PostgreSQL's programs, or None; Debian keeps them off the path."""
    there = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(there[-1]) if there else None)


def free_memory():
    """GB that this process may still take, or None where the system does not say: the machine's, or its container's."""
    free = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / f"memory.{name}").read_text(encoding="ascii").strip() for name in ("max", "current"))
        free += [int(limit) - int(used)] if limit != "max" else []
    except (OSError, ValueError):
        pass  # another system, or no container
    return min(free) / 1e9 if free else None


def _installed(requirement):
    try:
        importlib.metadata.distribution(requirement)
        return True
    except importlib.metadata.PackageNotFoundError:
        return False


def _these(names):
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _room(module):
    """A module of a room that this one is no part of: it is taken by its name, as the commands are."""
    return importlib.import_module(module)


def _out(args):
    return Path(args.out).absolute()


def _course(args):
    return Path(args.course).absolute()


# command -> the part of the course whose packages it takes, or the part and those of its packages; and what else it
# needs. "autograde" is nbgrader's.
NEEDS = {
    "demo": ("grading", grading_memory, disk(1, lambda args: ROOT / "build" / "demo")),  # without walls it goes on
    "course": ("grading",),
    "release": ("grading", disk(0.2, _out), trial),
    "collect": ("grading", disk(0.5, _course), gradebook),
    "run": ("student", walls, grading_memory, disk(0.2, _out)),
    "autograde": ("grading", walls, grading_memory, disk(0.2, _course), gradebook),
    "export": ("grading", gradebook),
    "report": ("grading", gradebook),
    "demo-class": ("grading",),
    "book": ("notebooks",),
    "attack": ("student", walls, grading_memory),
    "bank": ("course", "matplotlib", "jinja2"),
    "notebooks": ("course", "jupytext"),
    "week-notebook": ("course", "jupytext"),
    "matrix": ("course", "matplotlib"),
    "mutants": ("course", "cosmic-ray"),
    "soak": ("student", walls, grading_memory),
    "picture": ("student", lambda args: "" if chromium() else NO_CHROMIUM),
}


def autograde(course, sandboxed):
    """What nbgrader's autograde lacks, for a course folder."""
    return missing("autograde", SimpleNamespace(course=course, unsandboxed=not sandboxed))
