"""What a student installs: pyproject.toml and constraints.txt of the bundle, derived from the project's own."""

import importlib.metadata
import json
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from grading.release.errors import ReleaseError
from grading.stubs import ROOT

EXTRAS = ("real", "notebooks")  # of the project's extras, those that a student needs


def student_pyproject():
    """The text of the bundle's pyproject.toml: the course library, its tests, and the student's extras."""
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = {key: value for key, value in own["project"].items() if key != "optional-dependencies"}
    extras = {name: own["project"]["optional-dependencies"][name] for name in EXTRAS}
    tables = {
        "build-system": own["build-system"],
        "project": project,
        "project.optional-dependencies": extras,
        "tool.setuptools": own["tool"]["setuptools"],
        "tool.pytest.ini_options": own["tool"]["pytest"]["ini_options"],
    }
    return "\n".join(f"[{name}]\n{_lines(table)}" for name, table in tables.items())


def student_constraints():
    """The text of the bundle's constraints.txt: the project's pins of what the student's extras install."""
    pins = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pins[canonicalize_name(line.split("==")[0])] = line
    needed = _installed_by(tomllib.loads(student_pyproject())["project"], pins)
    return "\n".join(["# Exact versions of all that a student installs.", *(pins[name] for name in needed)]) + "\n"


def _lines(table):
    """A flat TOML table; JSON writes texts, lists and truth values as TOML does."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())


def _installed_by(project, pins):
    """Names of the pinned packages that the project's dependencies and extras bring along, sorted."""
    todo = [Requirement(text) for text in project["dependencies"]]
    todo += [Requirement(text) for extra in project["optional-dependencies"].values() for text in extra]
    found, asked = set(), set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        wanted = {(name, extra) for extra in {"", *requirement.extras}} - asked
        asked |= wanted
        if name not in pins or not wanted:  # what has no pin is for other systems
            continue
        found.add(name)
        try:
            inner = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            raise ReleaseError(f"{name} is not installed here, so what it needs is not known: run make test.") from None
        for needed in map(Requirement, inner):
            if any(needed.marker is None or _may_hold(needed.marker, extra) for _, extra in wanted):
                todo.append(needed)
    return sorted(found)


def _may_hold(marker, extra):
    """Whether a marker holds on some system that students use."""
    systems = ({}, {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
               {"sys_platform": "darwin", "platform_system": "Darwin"})  # fmt: skip
    return any(marker.evaluate({"extra": extra, **system}) for system in systems)
